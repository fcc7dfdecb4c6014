// A note above every view of a report file: its content, the selection of its numbers, and the
// functions that only `cairn analyze` has.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { reportFile, type ReportInfo } from '../api/report-file';
import { formatCount } from '../base/format';
import { useMeta } from './parts/meta-context';
import './report-note.css';

function useReportInfo(): ReportInfo | null {
  const [info, setInfo] = useState<ReportInfo | null>(null);
  useEffect(() => {
    void reportFile?.info().then(setInfo);
  }, []);
  return info;
}

function limitsOf(info: ReportInfo): readonly string[] {
  const single = [
    ...(info.processes.length > 0 ? [`processes ${info.processes.join(', ')}`] : []),
    ...(info.threads.length > 0 ? [`threads ${info.threads.join(', ')}`] : []),
  ];
  return [
    `Filters: ${single.length === 0 ? 'none' : `one of the ${single.join(' or one of the ')}`}. Filters by function, file, module and time, and comparisons, are not in the file.`,
    ...(info.omitted > 0 ? [`${formatCount(info.omitted)} more processes or threads are not there by themselves.`] : []),
    `Tables hold the ${formatCount(info.rows_max)} rows with most bytes at the peak, trees the ${formatCount(info.nodes_max)} nodes with the largest share of any cost; what is shown says of how many.`,
    'The text of source files and the single stacks behind a row of a tree are not in the file.',
  ];
}

export function ReportNote(): JSX.Element {
  const info = useReportInfo();
  const meta = useMeta();
  return (
    <div class="report-note" data-testid="report-note">
      <span>
        {`A report on ${meta.file.name}, made by cairn ${meta.tool_version}.`}
        {info === null || info.filter === '' ? '' : ` It counts only: ${info.filter.trim().replaceAll(/\s*\n\s*/g, '; ')}.`}
      </span>
      <details>
        <summary class="soft">What this file leaves out</summary>
        {info === null ? null : (
          <ul>
            {limitsOf(info).map((limit) => (
              <li key={limit}>{limit}</li>
            ))}
            <li>
              <code>{`cairn analyze ${meta.file.name}`}</code> shows all of it.
            </li>
          </ul>
        )}
      </details>
    </div>
  );
}
