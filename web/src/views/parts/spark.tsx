// A sparkline: the history of one row, drawn as an area.
import type { JSX } from 'preact';
import './spark.css';

/** `values` in hundredths of the highest. */
export function Spark(props: { readonly values: readonly number[]; readonly label: string }): JSX.Element {
  const { values } = props;
  const last = Math.max(values.length - 1, 1);
  const line = values.map((value, i) => `${i === 0 ? 'M' : 'L'}${((i / last) * 100).toFixed(1)} ${(100 - value).toFixed(0)}`).join('');
  return (
    <svg class="spark" viewBox="0 -4 100 108" preserveAspectRatio="none" role="img" aria-label={props.label}>
      <title>{props.label}</title>
      <path class="spark-area" d={`${line}L100 100L0 100Z`} />
      <path class="spark-line" d={line} />
    </svg>
  );
}
