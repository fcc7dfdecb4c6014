// Colours for code: a hue for each module, a shade for each function. Pure.
import { nameHash } from '../base/name-hash';

/** Golden angle: neighbours in the list have distant hues for any length of the list. */
const ANGLE = 137.508;

export interface Palette {
  readonly frame: (moduleIndex: number, name: string) => string;
  readonly series: (index: number, alpha?: number) => string;
  /** Between the colour of a series and the background. */
  readonly pale: (index: number) => string;
  readonly change: (share: number) => string;
}

/** How many hues can be told apart: those that follow are duller, and further from the others in lightness. */
const HUES = 6;

interface Tone {
  readonly hue: string;
  readonly saturation: number;
  readonly step: number;
  readonly isLate: boolean;
}

function seriesTone(index: number): Tone {
  const isLate = index >= HUES;
  return { hue: ((212 + index * ANGLE) % 360).toFixed(0), saturation: isLate ? 0.5 : 1, step: index % 3, isLate };
}

export function palette(isDark: boolean): Palette {
  return {
    frame: (moduleIndex, name) => {
      const hash = nameHash(name);
      const shade = (hash % 9) - 4;
      const turn = ((hash >>> 8) % 25) - 12;
      const hue = moduleIndex < 0 ? 0 : (392 + moduleIndex * ANGLE + turn) % 360;
      const saturation = moduleIndex < 0 ? 0 : isDark ? 38 : 58;
      return `hsl(${hue.toFixed(0)} ${saturation}% ${(isDark ? 36 : 76) + shade}%)`;
    },
    series: (index, alpha = 1) => {
      const { hue, saturation, step, isLate } = seriesTone(index);
      const light = (isDark ? 50 : 62) - step * 5 + (isLate ? (isDark ? 16 : -10) : 0);
      return `hsl(${hue} ${(isDark ? 36 : 48) * saturation}% ${light}% / ${alpha})`;
    },
    pale: (index) => {
      const { hue, saturation, step, isLate } = seriesTone(index);
      const light = (isDark ? 24 : 88) - step * 2 + (isLate ? (isDark ? 6 : -4) : 0);
      return `hsl(${hue} ${(isDark ? 22 : 42) * saturation}% ${light}%)`;
    },
    change: (share) => {
      const strength = Math.min(Math.abs(share), 1);
      if (strength < 0.005) {
        return isDark ? 'hsl(220 5% 32%)' : 'hsl(220 8% 88%)';
      }
      const hue = share > 0 ? 8 : 212;
      return isDark
        ? `hsl(${hue} ${25 + strength * 40}% ${30 + strength * 12}%)`
        : `hsl(${hue} ${40 + strength * 45}% ${86 - strength * 24}%)`;
    },
  };
}
