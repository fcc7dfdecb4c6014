// Decoders for the answers about single blocks (docs/format/json.md, "blocks").
import { code } from './answers';
import { list, num, nums, object, refs, str, type Decoded } from './decode';

const singleBlocks = object({
  count: num,
  address: nums,
  size_bytes: nums,
  born_ms: nums,
  age_ms: nums,
  freed_ms: refs,
  pid: nums,
  thread_id: nums,
  thread: list(str),
  location: refs,
});

/** The single blocks of a recording that lists them. */
export const blocks = object({ end: singleBlocks, peak: singleBlocks, code });

export type Blocks = Decoded<typeof blocks>;
