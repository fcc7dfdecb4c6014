// Decoders: unknown JSON in, checked values out. The server is ours, but a page may be older or
// newer than the server. An error here names the field; a view would fail without a reason.
//
// The only file where `as` may turn unknown into a type (see scripts/lint.mjs).

export type Decode<T> = (value: unknown, path: string) => T;
export type Decoded<D> = D extends Decode<infer T> ? T : never;

export class DecodeError extends Error {}

function fail(path: string, wanted: string): never {
  throw new DecodeError(`the answer has no ${wanted} at ${path}`);
}

export const num: Decode<number> = (value, path) =>
  typeof value === 'number' && Number.isFinite(value) ? value : fail(path, 'number');

export const str: Decode<string> = (value, path) =>
  typeof value === 'string' ? value : fail(path, 'text');

/** A value of a database. */
export const textOrNumber: Decode<string | number | null> = (value, path) =>
  value === null || typeof value === 'string' ? value : num(value, path);

export const bool: Decode<boolean> = (value, path) =>
  typeof value === 'boolean' ? value : fail(path, 'boolean');

/** 0 and 1 come as numbers or as booleans. */
export const flag: Decode<number> = (value, path) =>
  value === true || value === 1 ? 1 : value === false || value === 0 ? 0 : fail(path, 'flag');

export function orNull<T>(inner: Decode<T>): Decode<T | null> {
  return (value, path) => (value === null || value === undefined ? null : inner(value, path));
}

export function list<T>(inner: Decode<T>): Decode<readonly T[]> {
  return (value, path) =>
    Array.isArray(value)
      ? value.map((entry, index) => inner(entry, `${path}[${index}]`))
      : fail(path, 'list');
}

/** A list of numbers: most of all data, checked without a path for each number. */
export const nums: Decode<readonly number[]> = (value, path) => {
  if (!Array.isArray(value) || !value.every((entry) => typeof entry === 'number')) {
    fail(path, 'list of numbers');
  }
  return value as readonly number[];
};

/** A figure that the answer may not know: null becomes NaN, which formats show as a dash. */
export const figure: Decode<number> = (value, path) =>
  value === null || Number.isNaN(value) ? Number.NaN : num(value, path);

export const figures: Decode<readonly number[]> = (value, path) =>
  Array.isArray(value) && value.includes(null)
    ? nums(value.map((entry: unknown) => entry ?? Number.NaN), path)
    : nums(value, path);

export const refs: Decode<readonly (number | null)[]> = (value, path) => {
  if (!Array.isArray(value) || !value.every((entry) => entry === null || typeof entry === 'number')) {
    fail(path, 'list of references');
  }
  return value as readonly (number | null)[];
};

type Shape = Readonly<Record<string, Decode<unknown>>>;
type ShapeOf<S extends Shape> = { readonly [K in keyof S]: Decoded<S[K]> };

export function object<S extends Shape>(shape: S): Decode<ShapeOf<S>> {
  return (value, path) => {
    if (typeof value !== 'object' || value === null) {
      fail(path, 'object');
    }
    const source = value as Readonly<Record<string, unknown>>;
    const out: Record<string, unknown> = {};
    for (const [key, decode] of Object.entries(shape)) {
      out[key] = decode(source[key], `${path}.${key}`);
    }
    return out as ShapeOf<S>;
  };
}

/** The columns of numbers and flags of a table, by name, if the answer itself lists them. */
export const numberColumns: Decode<Readonly<Record<string, readonly number[]>>> = (value, path) => {
  if (typeof value !== 'object' || value === null) {
    fail(path, 'object');
  }
  const columns = Object.entries(value).filter((entry): entry is [string, unknown[]] => Array.isArray(entry[1]));
  return Object.fromEntries(columns.map(([key, column]) => [key, nums(column.map((entry) => (entry === null ? Number.NaN : Number(entry))), `${path}.${key}`)]));
};

export function record<T>(inner: Decode<T>): Decode<Readonly<Record<string, T>>> {
  return (value, path) => {
    if (typeof value !== 'object' || value === null) {
      fail(path, 'object');
    }
    return Object.fromEntries(
      Object.entries(value).map(([key, entry]: [string, unknown]) => [key, inner(entry, `${path}.${key}`)]),
    );
  };
}
