// The whole stacks of a node: one at a time, "n of N", with links to source and editor, and copy.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { stacks as stacksAnswer, type Stacks } from '../api/answers';
import { at, range } from '../base/columns';
import { formatCount } from '../base/format';
import { fileLine, locationName } from '../model/code';
import { costTitle, formatCostExact, TABLE_COSTS, type CostKey } from '../model/cost';
import { useAsk } from '../state/hooks';
import { FrameList, type NamedFrame } from './frame-list';
import { useLiveWhen } from './parts/live-when';
import { Pane } from './parts/pane';
import { useKnows, useTells } from './parts/unknown-costs';
import './stack-panel.css';

function framesOf(stacks: Stacks, row: number): readonly NamedFrame[] {
  const first = at(stacks.stacks.frame_first, row);
  return range(at(stacks.stacks.frame_count, row)).map((offset) => ({
    name: locationName(stacks.code, stacks.frames.location[first + offset]),
    isInlined: stacks.frames.inlined[first + offset] === 1,
  }));
}

function copyText(frames: readonly NamedFrame[]): string {
  return frames.map(({ name }) => [name.full, fileLine(name), name.module].join('\t')).join('\n');
}

/** `rows`: of the answer, if not all. */
export function OneStack(props: { readonly stacks: Stacks; readonly rows?: readonly number[]; readonly cost?: CostKey }): JSX.Element {
  const { stacks } = props;
  const count = props.rows?.length ?? stacks.stacks.count;
  const knows = useKnows();
  const tells = useTells();
  const when = useLiveWhen();
  const [chosen, setChosen] = useState(0);
  useEffect(() => setChosen(0), [stacks]);
  const place = Math.min(chosen, Math.max(count - 1, 0));
  const row = props.rows === undefined ? place : (props.rows[place] ?? 0);
  const frames = count === 0 ? [] : framesOf(stacks, row);
  return (
    <>
      <div class="stack-head">
        <button type="button" aria-label="Previous stack" disabled={place === 0} onClick={() => setChosen(place - 1)}>
          ‹
        </button>
        <span>{`${count === 0 ? 0 : place + 1} of ${formatCount(props.rows === undefined ? stacks.total_count : count)}`}</span>
        <button type="button" aria-label="Next stack" disabled={place + 1 >= count} onClick={() => setChosen(place + 1)}>
          ›
        </button>
        <button type="button" onClick={() => void navigator.clipboard.writeText(copyText(frames))}>
          Copy
        </button>
      </div>
      <dl class="stack-costs">
        {TABLE_COSTS.filter(knows).map((cost) => (
          <div key={cost}>
            <dt>{costTitle(cost, when)}</dt>
            <dd>{tells(cost) ? formatCostExact(cost, at(stacks.stacks.costs[cost], row)) : 'unknown'}</dd>
          </div>
        ))}
      </dl>
      <FrameList frames={frames} {...(props.cost === undefined ? {} : { cost: props.cost })} />
    </>
  );
}

export function StackPanel(props: {
  readonly asked: Readonly<Record<string, string>>;
  /** In the tree with the parameters `asked`; -1: no node is selected. */
  readonly node: number;
  readonly cost: string;
}): JSX.Element {
  const { diff: _diff, sort_by: _sortBy, ...filter } = props.asked;
  const asked = useAsk(
    props.node < 0 ? null : 'stacks',
    { ...filter, costs: TABLE_COSTS.join(','), sort: props.cost, node: String(props.node), limit: '50' },
    stacksAnswer,
  );
  return (
    <section class={props.node < 0 ? 'stack stack-none' : 'stack'} aria-label="Stacks">
      <h2>Stacks</h2>
      {props.node < 0 ? (
        <p class="soft">Select a row to see the whole stacks behind it.</p>
      ) : (
        <Pane asked={asked} label="Stacks">
          {(stacks) => <OneStack stacks={stacks} />}
        </Pane>
      )}
    </section>
  );
}
