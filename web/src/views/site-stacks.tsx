// The stacks of one call site: those of its function whose innermost frame beyond wrappers is at its line.
import type { JSX } from 'preact';
import { stacks as stacksAnswer } from '../api/answers';
import { inReport } from '../api/report-file';
import { range, at } from '../base/columns';
import { locationName, type CodeName } from '../model/code';
import { wholeRunParams } from '../state/address';
import { useAddress, useAsk } from '../state/hooks';
import { OneStack } from './stack-panel';
import { Pane } from './parts/pane';
import './stack-panel.css';

type Answer = ReturnType<typeof stacksAnswer>;

/** The rows of the stacks that end at the site, the highest first. */
function ownRows(answer: Answer, name: CodeName): readonly number[] {
  const { stacks, frames, code } = answer;
  return range(stacks.count).filter((row) => {
    const first = at(stacks.frame_first, row);
    const names = range(at(stacks.frame_count, row)).map((offset) => locationName(code, frames.location[first + offset]));
    const site = names.find((frame) => !frame.isWrapper) ?? names[0];
    return site !== undefined && site.full === name.full && site.line === name.line;
  });
}

export function SiteStacks(props: { readonly name: CodeName }): JSX.Element | null {
  const { name } = props;
  const address = useAddress();
  const isAsked = name.id !== null && !inReport();
  const asked = useAsk(
    isAsked ? 'stacks' : null,
    { ...wholeRunParams(address), function_id: String(name.id ?? ''), costs: 'live_bytes,live_blocks,peak_bytes,allocations,temporary,allocated_bytes', sort: 'live_bytes', limit: '100' },
    stacksAnswer,
  );
  return isAsked ? (
    <section class="stack" aria-label="Stacks of the selected call site">
      <h2>Stacks</h2>
      <Pane asked={asked} label="Stacks">
        {(answer) => <OneStack stacks={answer} rows={ownRows(answer, name)} cost="live_bytes" />}
      </Pane>
    </section>
  ) : null;
}
