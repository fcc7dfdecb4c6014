// The frames of one stack, innermost first, with links to the function, the source and the editor.
// Wrapper frames in a row are one line, which unfolds.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { CodeName } from '../model/code';
import type { CostKey } from '../model/cost';
import { foldFrames } from '../model/folded-frames';
import { useAddress } from '../state/hooks';
import { CodeLink, PlaceLinks } from './parts/code-label';

export interface NamedFrame {
  readonly name: CodeName;
  readonly isInlined: boolean;
}

function Frame(props: { readonly frame: NamedFrame; readonly cost: CostKey | undefined }): JSX.Element {
  const { frame } = props;
  return (
    <li class={frame.name.isWrapper ? 'stack-wrapper' : ''}>
      <CodeLink name={{ ...frame.name, file: '' }} inlined={frame.isInlined} />
      <PlaceLinks name={frame.name} cost={props.cost} />
    </li>
  );
}

/** `cost`: that the page shows, if its address does not have it. */
export function FrameList(props: { readonly frames: readonly NamedFrame[]; readonly cost?: CostKey }): JSX.Element {
  const { frames } = props;
  const shows = useAddress().wrappers === '1';
  const [open, setOpen] = useState<readonly number[]>([]);
  useEffect(() => setOpen([]), [frames[0]?.name, frames.length]);
  return (
    <ol class="stack-frames" tabIndex={0} aria-label="Frames, innermost first">
      {foldFrames(frames.map((frame) => frame.name)).map((run) =>
        run.count === 1 || shows || open.includes(run.first) ? (
          frames.slice(run.first, run.first + run.count).map((frame, index) => <Frame key={`${run.first}.${index}`} frame={frame} cost={props.cost} />)
        ) : (
          <li key={run.first}>
            <button type="button" class="link stack-wrapper" aria-expanded={false} onClick={() => setOpen([...open, run.first])}>
              {`▸ ${run.label}`}
            </button>
          </li>
        ),
      )}
    </ol>
  );
}
