// Events that the program reported itself (cairn_event): not heap, so separate from all other
// figures, and always of the whole run.
import type { JSX } from 'preact';
import { adhoc as adhocAnswer, type Adhoc } from '../api/answers';
import { at, range } from '../base/columns';
import { formatCount } from '../base/format';
import { locationName, type CodeName } from '../model/code';
import { useAsk } from '../state/hooks';
import { CodeLink } from './parts/code-label';
import { useCapability } from './parts/meta-context';
import './events.css';

const ROWS = 10;

/** The caller of cairn_event: the header's own frames are inlined into it. */
function callerOf(answer: Adhoc, row: number): CodeName | null {
  const { entries, frames, code } = answer;
  const first = at(entries.frame_first, row);
  const count = at(entries.frame_count, row);
  const caller = range(count).find((place) => frames.inlined[first + place] !== 1 || place + 1 === count);
  return caller === undefined ? null : locationName(code, frames.location[first + caller]);
}

function Table(props: { readonly answer: Adhoc }): JSX.Element {
  const { answer } = props;
  const { entries } = answer;
  const shown = Math.min(entries.count, ROWS);
  return (
    <>
      <table>
        <thead>
          <tr>
            <th scope="col" class="events-number" title="the sum of the weights, in the program's own unit">
              Weight
            </th>
            <th scope="col" class="events-number">
              Events
            </th>
            <th scope="col">Name</th>
            <th scope="col">Reported by</th>
          </tr>
        </thead>
        <tbody>
          {range(shown).map((row) => {
            const caller = callerOf(answer, row);
            return (
              <tr key={row}>
                <td class="events-number" title={at(entries.weight, row).toLocaleString()}>
                  {formatCount(at(entries.weight, row))}
                </td>
                <td class="events-number" title={at(entries.events, row).toLocaleString()}>
                  {formatCount(at(entries.events, row))}
                </td>
                <td class="mono" title={`process ${at(entries.pid, row)}`}>
                  {entries.name[row]}
                </td>
                <td>{caller === null ? '' : <CodeLink name={caller} />}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {answer.total_count > shown ? <p class="soft">{`and ${formatCount(answer.total_count - shown)} more: cairn report, cairn export --to json`}</p> : null}
    </>
  );
}

/** Empty if the program reported no event. */
export function Events(): JSX.Element | null {
  const has = useCapability('adhoc');
  const asked = useAsk(has ? 'adhoc' : null, {}, adhocAnswer);
  if (asked.value === null || asked.value.entries.count === 0) {
    return null;
  }
  return (
    <section class="events" data-testid="events">
      <h2>Events that the program reported</h2>
      <Table answer={asked.value} />
    </section>
  );
}
