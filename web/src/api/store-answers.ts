// Decoders for the answers about a store of recordings (docs/format/http-api.md).
import { list, num, object, record, str, textOrNumber, type Decoded } from './decode';

/** Of a store; the columns differ by question. */
export const storeTable = object({ columns: list(str), rows: list(record(textOrNumber)), more: num });

/** The viewer of a recording that was opened from a store. */
export const storedAddress = object({ address: str });
export type StoreTable = Decoded<typeof storeTable>;
