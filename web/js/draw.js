// The draw, recomputed here: what a person's own score must be by the published seed.

const CEILING = 2 ** 40;

/**
 * The score that the seed gives to a request: the first 40 bits of HMAC-SHA256, plus
 * one. Null where the browser has no cryptography for pages, as without HTTPS.
 */
export async function scoreOf(seed, requestId, subtle = globalThis.crypto?.subtle) {
  if (!subtle) return null;
  const key = await subtle.importKey('raw', Uint8Array.from(seed.match(/../g), (pair) => Number.parseInt(pair, 16)), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const mac = new Uint8Array(await subtle.sign('HMAC', key, new TextEncoder().encode(requestId)));
  return Math.min(mac.slice(0, 5).reduce((score, byte) => score * 256 + byte, 0) + 1, CEILING - 1);
}
