// Requests to the server: one function, cancellable, with every expected failure as a value. The
// token of the page authorizes requests; the browser's own cache revalidates with the ETag.
import type { AppError, Answered, Result } from '../base/result';
import { problem, stamp } from './answers';
import { storedAddress } from './store-answers';
import { DecodeError, type Decode } from './decode';
import { answerFrom, problemOf, type AnswerSource } from './report-ask';
import { reportFile } from './report-file';
import { authorization } from './token';

const UNREACHABLE: AppError = {
  code: 'unreachable',
  message: 'the server does not answer; is `cairn analyze` still running?',
};

/** Parameters with an empty value are omitted. */
export function query(params: Readonly<Record<string, string>>): string {
  const given = Object.entries(params).filter(([, value]) => value !== '');
  const text = new URLSearchParams(given).toString();
  return text === '' ? '' : `?${text}`;
}

/** The path and query of a route. */
export function targetOf(route: string, params: Readonly<Record<string, string>>): string {
  return `/api/v1/${route}${query(params)}`;
}

function errorOf(status: number, body: unknown): AppError {
  try {
    return problem(body, 'answer').error;
  } catch {
    return status === 401
      ? { code: 'permission', message: 'this page has no access; open the address that cairn printed' }
      : { code: 'http', message: `the server answered ${status}` };
  }
}

/** The same for a page that carries its answers. */
async function askReport<T>(
  source: AnswerSource,
  route: string,
  params: Readonly<Record<string, string>>,
  decode: Decode<T>,
): Promise<Result<T>> {
  try {
    return { ok: true, value: decode(await answerFrom(source, route, params), route) };
  } catch (error) {
    return { ok: false, error: { code: 'report', message: problemOf(error) ?? 'the report file is damaged' } };
  }
}

export async function ask<T>(
  route: string,
  params: Readonly<Record<string, string>>,
  decode: Decode<T>,
  signal: AbortSignal,
): Promise<Answered<T>> {
  if (reportFile !== null) {
    return { ...(await askReport(reportFile, route, params, decode)), generation: null };
  }
  try {
    const response = await fetch(targetOf(route, params), { signal, headers: { accept: 'application/json', ...(await authorization()) } });
    const body: unknown = await response.json();
    if (!response.ok) {
      return { ok: false, error: errorOf(response.status, body), generation: null };
    }
    return { ok: true, value: decode(body, route), generation: stamp(body, route).generation };
  } catch (error) {
    if (error instanceof DecodeError) {
      return { ok: false, error: { code: 'decode', message: error.message }, generation: null };
    }
    return { ok: false, error: UNREACHABLE, generation: null };
  }
}

/** Have the browser keep an answer for a later request. Failures are of no interest: that request will have them, too. */
export async function prepare(route: string, params: Readonly<Record<string, string>>, signal: AbortSignal): Promise<void> {
  try {
    const response = await fetch(targetOf(route, params), { signal, priority: 'low', headers: { accept: 'application/json', ...(await authorization()) } });
    await response.arrayBuffer();
  } catch {
    // Stopped, or the server is gone.
  }
}

/** Set the baseline of a comparison, or remove it with null. */
export async function putBaseline(file: File | null): Promise<Result<null>> {
  try {
    const response = await fetch(`/api/v1/baseline${query({ name: file?.name ?? '' })}`, {
      method: file === null ? 'DELETE' : 'PUT',
      headers: await authorization(),
      ...(file === null ? {} : { body: file }),
    });
    if (response.ok) {
      return { ok: true, value: null };
    }
    const body: unknown = await response.json();
    return { ok: false, error: errorOf(response.status, body) };
  } catch {
    return { ok: false, error: UNREACHABLE };
  }
}

/** Open a recording of a store; gives the address of its viewer, which is on this machine. */
export async function openStored(id: string): Promise<Result<string>> {
  try {
    const response = await fetch(`/api/v1/store/recording${query({ recording_id: id })}`, { method: 'PUT', headers: await authorization() });
    const body: unknown = await response.json();
    return response.ok
      ? { ok: true, value: storedAddress(body, 'recording').address }
      : { ok: false, error: errorOf(response.status, body) };
  } catch {
    return { ok: false, error: UNREACHABLE };
  }
}
