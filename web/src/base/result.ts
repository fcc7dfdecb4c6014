// Expected failures as values. An AppError has one sentence for the user, and a code for the
// program.

export interface AppError {
  readonly code: string;
  readonly message: string;
}

export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: AppError };

/** `generation`: of the data that the server served, null if the answer does not have it. */
export type Answered<T> = Result<T> & { readonly generation: number | null };

export function assertNever(value: never): never {
  throw new Error(`impossible: ${JSON.stringify(value)}`);
}
