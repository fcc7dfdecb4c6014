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
    series: (index, alpha = 1) =>
      `hsl(${((212 + index * ANGLE) % 360).toFixed(0)} ${isDark ? 36 : 48}% ${(isDark ? 50 : 62) - (index % 3) * 5}% / ${alpha})`,
    pale: (index) => `hsl(${((212 + index * ANGLE) % 360).toFixed(0)} ${isDark ? 22 : 42}% ${(isDark ? 24 : 88) - (index % 3) * 2}%)`,
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
