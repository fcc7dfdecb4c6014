// The access token of this page. It comes with the address, is removed from it at once, and is kept
// for this origin, host and port. (A cookie would be sent to every port of this machine.)
import { object, str } from './decode';

const KEY = 'cairn-token';
const answer = object({ token: str });
let token: Promise<string> = Promise.resolve('');

function kept(): string {
  try {
    return localStorage.getItem(KEY) ?? '';
  } catch {
    return '';
  }
}

function keep(text: string): void {
  try {
    localStorage.setItem(KEY, text);
  } catch {
    // A browser without storage asks for the whole address again after a reload.
  }
}

/**
 * A command line of a browser has a token that is valid once: it is exchanged for the lasting one.
 */
async function exchange(given: string): Promise<string> {
  try {
    const response = await fetch(`/api/v1/token?token=${encodeURIComponent(given)}`);
    const lasting = response.ok ? answer(await response.json(), 'token').token : given;
    keep(lasting);
    return lasting;
  } catch {
    return given;
  }
}

/** Read the address before the token is removed from it. */
export function takeToken(): void {
  const given = new URLSearchParams(location.search).get('token');
  token = given === null ? Promise.resolve(kept()) : exchange(given);
}

export async function authorization(): Promise<Readonly<Record<string, string>>> {
  return { authorization: `Bearer ${await token}` };
}

/** For requests that cannot send a header. */
export async function withToken(target: string): Promise<string> {
  return `${target}?token=${await token}`;
}
