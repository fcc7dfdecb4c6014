// Buttons that save a chart: as a drawing, and as pixels at twice the size.
import type { JSX } from 'preact';
import { pictureHeightPx, pictureSvg, PICTURE_WIDTH_PX, type Picture } from '../../render/picture';
import { useSaveFile } from './save-file';

const SCALE = 2;

async function pixelsOf(svg: Blob, widthPx: number, heightPx: number): Promise<Blob | null> {
  const url = URL.createObjectURL(svg);
  try {
    const image = new Image(widthPx, heightPx);
    image.src = url;
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = widthPx * SCALE;
    canvas.height = heightPx * SCALE;
    canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
  } finally {
    URL.revokeObjectURL(url);
  }
}

export function PictureButtons(props: { readonly name: string; readonly picture: () => Picture }): JSX.Element {
  const saveFile = useSaveFile();
  const save = async (kind: 'svg' | 'png'): Promise<void> => {
    const picture = props.picture();
    const svg = new Blob([pictureSvg(picture)], { type: 'image/svg+xml' });
    const content = kind === 'svg' ? svg : await pixelsOf(svg, PICTURE_WIDTH_PX, pictureHeightPx(picture));
    if (content !== null) {
      saveFile(`${props.name}.${kind}`, content);
    }
  };
  return (
    <>
      <button type="button" title="Save as a drawing" onClick={() => void save('svg')}>
        SVG
      </button>
      <button type="button" title="Save as a picture" onClick={() => void save('png')}>
        PNG
      </button>
    </>
  );
}
