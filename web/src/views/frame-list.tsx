// The frames of one stack, innermost first, with links to the function, the source and the editor.
import type { JSX } from 'preact';
import type { CodeName } from '../model/code';
import { CodeLink, PlaceLinks } from './parts/code-label';
import { useCapability, useMeta } from './parts/meta-context';

export interface NamedFrame {
  readonly name: CodeName;
  readonly isInlined: boolean;
}

export function FrameList(props: { readonly frames: readonly NamedFrame[] }): JSX.Element {
  const meta = useMeta();
  const hasSource = useCapability('source');
  return (
    <ol class="stack-frames" tabIndex={0} aria-label="Frames, innermost first">
      {props.frames.map((frame, index) => (
        <li key={index}>
          <CodeLink name={{ ...frame.name, file: '' }} inlined={frame.isInlined} />
          <PlaceLinks name={frame.name} editor={meta.editor} hasSource={hasSource} />
        </li>
      ))}
    </ol>
  );
}
