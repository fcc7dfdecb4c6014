// Passes a file to the browser's downloads, named after its recording.
import { useMeta } from './meta-context';

export type SaveFile = (name: string, content: Blob) => void;

/**
 * "flame.svg" of app.cairn becomes "app-flame.svg". Characters that file names must not have become
 * "_".
 */
function fileName(recording: string, name: string): string {
  const stem = recording.replace(/\.cairn$/, '').replace(/[\p{C}/\\:*?"<>|]/gu, '_');
  return stem === '' ? name : `${stem}-${name}`;
}

export function useSaveFile(): SaveFile {
  const { file } = useMeta();
  return (name, content) => {
    const url = URL.createObjectURL(content);
    const link = document.createElement('a');
    link.href = url;
    link.download = fileName(file.name, name);
    link.click();
    URL.revokeObjectURL(url);
  };
}
