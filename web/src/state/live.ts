// Follows a running recording: the server reports that the file has grown, and every view queries
// again. A finished recording has no events, and a browser has few connections.
import { withToken } from '../api/token';
import { num, object, str, type Decode } from '../api/decode';
import { noteNews, setNotice } from './app-state';

const RETRY_MS = 5000;
const LOST = 'The connection to cairn is lost. What you see is the last that was sent.';
const news = object({ generation: num });
const trouble = object({ message: str });

function read<T>(event: Event, decode: Decode<T>): T | null {
  if (!(event instanceof MessageEvent) || typeof event.data !== 'string') {
    return null;
  }
  try {
    return decode(JSON.parse(event.data), 'event');
  } catch {
    return null;
  }
}

function listen(source: EventSource): void {
  const hear = (event: Event): void => {
    const data = read(event, news);
    if (data !== null) {
      setNotice('');
      noteNews(data.generation);
    }
  };
  for (const name of ['hello', 'recording', 'baseline']) {
    source.addEventListener(name, hear);
  }
  source.addEventListener('problem', (event) => {
    const data = read(event, trouble);
    if (data !== null) {
      setNotice(data.message);
    }
  });
}

/** Returns a function that stops it. */
export function followRecording(): () => void {
  let source: EventSource | null = null;
  let timer = 0;
  let isStopped = false;
  const connect = async (): Promise<void> => {
    const address = await withToken('/api/v1/events');
    if (isStopped) {
      return;
    }
    source = new EventSource(address);
    const own = source;
    listen(own);
    own.addEventListener('error', () => {
      setNotice(LOST);
      // A browser tries again by itself, unless it was refused.
      if (own.readyState === EventSource.CLOSED) {
        timer = window.setTimeout(() => void connect(), RETRY_MS);
      }
    });
  };
  void connect();
  return () => {
    isStopped = true;
    window.clearTimeout(timer);
    source?.close();
    setNotice('');
  };
}
