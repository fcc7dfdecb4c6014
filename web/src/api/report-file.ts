// A report file (docs/format/html-report.md): the page carries the answers that a server would
// give, each compressed in its own element, and looks them up instead of sending requests. An
// element is read when it is first needed.
import { DecodeError, list, num, object, str, type Decoded } from './decode';

const reportInfo = object({
  version: num,
  filter: str,
  processes: list(num),
  threads: list(num),
  omitted: num,
  rows_max: num,
  nodes_max: num,
});
export type ReportInfo = Decoded<typeof reportInfo>;

const SUPPORTED_VERSION = 3;
const ATTRIBUTE = 'data-answer';

async function unpack(text: string): Promise<unknown> {
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  const value: unknown = JSON.parse(await new Response(stream).text());
  return value;
}

export class ReportFile {
  private readonly read = new Map<string, Promise<unknown>>();

  constructor(private readonly elements: ReadonlyMap<string, Element>) {}

  has(key: string): boolean {
    return this.elements.has(key);
  }

  /** The answer under `key`, which must exist. */
  get(key: string): Promise<unknown> {
    const known = this.read.get(key);
    if (known !== undefined) {
      return known;
    }
    const answer = unpack(this.elements.get(key)?.textContent ?? '');
    this.read.set(key, answer);
    return answer;
  }

  async info(): Promise<ReportInfo> {
    const info = reportInfo(await this.get('report?'), 'report');
    if (info.version !== SUPPORTED_VERSION) {
      throw new DecodeError(`this report is of version ${info.version}, which this page does not know`);
    }
    return info;
  }
}

function find(): ReportFile | null {
  const elements = globalThis.document?.querySelectorAll(`script[${ATTRIBUTE}]`) ?? [];
  const found = new Map([...elements].map((element) => [element.getAttribute(ATTRIBUTE) ?? '', element]));
  return found.size === 0 ? null : new ReportFile(found);
}

/** The answers of this page; null for a page from a server. */
export const reportFile: ReportFile | null = find();

/** Whether this page is a report file, which answers only what it holds. */
export function inReport(): boolean {
  return reportFile !== null;
}
