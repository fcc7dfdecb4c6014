// Expected failures as values. An AppError is what a person is told: one sentence, and a code to act upon.

export interface AppError {
  readonly code: string;
  readonly message: string;
}

export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: AppError };

/** `generation`: of what the server served then, null if the answer does not say. */
export type Answered<T> = Result<T> & { readonly generation: number | null };

export function assertNever(value: never): never {
  throw new Error(`impossible: ${JSON.stringify(value)}`);
}
