/** What stands in the two Secrets: reads it as input that nobody has checked, and writes it. */
import { fieldsOf, textOf, timeOf } from '../boost-engine';
import type { JsonObject } from '../kube';
import { readAuthority, readAuthorityCertificates } from './authority';
import type { Authority, AuthorityCertificate } from './authority';
import type { IssuedCertificate } from './issuer';
import { CertificateError, readServingCertificate } from './servingCertificate';
import type { ServingCertificate } from './servingCertificate';

/**
 * The CA Secret. Which parts are there is the phase of a rotation, so that any process can carry it
 * on: `next` is being published, and signs once API servers had time to hear of it; `previous` are
 * trusted until no admission endpoint serves what they signed.
 */
export interface Authorities {
  readonly signer: Authority | undefined;
  readonly next: NextAuthority | undefined;
  readonly previous: readonly AuthorityCertificate[];
}

export interface NextAuthority {
  readonly authority: Authority;
  /** Epoch milliseconds at which every caBundle was seen to have it; undefined before. */
  readonly publishedAt: number | undefined;
}

export interface StoredAuthorities extends Authorities {
  /** Our keys hold something that is none of the three. */
  readonly hasResidue: boolean;
}

/** The serving Secret; undefined where no certificate with its key can be read from it. */
export type StoredServing = ServingCertificate | undefined;

/** Of the serving Secret, as cert-manager and kubectl name them. */
const SERVING_KEYS = {
  certificate: 'tls.crt',
  key: 'tls.key',
  authority: 'ca.crt',
} as const;

const AUTHORITY_KEYS = {
  signer: 'ca.crt',
  signerKey: 'ca.key',
  next: 'next.crt',
  nextKey: 'next.key',
  nextPublishedAt: 'next.published-at',
  previous: 'previous.crt',
} as const;

/** Sixteen certificates of the largest usual kind; a Secret may have 1 MiB of anything. */
const MAX_VALUE_LENGTH = 64 * 2 ** 10;

/** Never throws. */
export function readAuthorities(secret: JsonObject | undefined): StoredAuthorities {
  const values = secretValues(secret);
  const value = (key: keyof typeof AUTHORITY_KEYS): string => values.get(AUTHORITY_KEYS[key]) ?? '';
  const signer = readAuthority(value('signer'), value('signerKey'));
  const next = readAuthority(value('next'), value('nextKey'));
  // An authority that has lost its key cannot sign any more, but what it signed may be served.
  const keyless = [
    signer === undefined ? value('signer') : '',
    next === undefined ? value('next') : '',
  ];
  const previous = readAuthorityCertificates([value('previous'), ...keyless].join('\n'));
  const authorities: Authorities = {
    signer,
    next:
      next === undefined
        ? undefined
        : { authority: next, publishedAt: timeOf(values.get(AUTHORITY_KEYS.nextPublishedAt)) },
    previous,
  };
  const canonical = new Map(Object.entries(authorityValues(authorities)));
  const hasResidue = Object.values(AUTHORITY_KEYS).some(
    (key) => values.get(key) !== (canonical.get(key) ?? undefined),
  );
  return { ...authorities, hasResidue };
}

/** For a merge patch: every key of ours, null where there is nothing to stand in it. */
export function authorityData(authorities: Authorities): JsonObject {
  return encoded(authorityValues(authorities));
}

/** Never throws. */
export function readServing(secret: JsonObject | undefined): StoredServing {
  const { certificate, key } = servingTexts(secret);
  try {
    return readServingCertificate(
      { name: SERVING_KEYS.certificate, text: certificate },
      { name: SERVING_KEYS.key, text: key },
    );
  } catch (error) {
    if (error instanceof CertificateError) return undefined;
    throw error;
  }
}

/** PEM of the certificate and of its key as they stand there, '' where they do not. */
export function servingTexts(secret: JsonObject | undefined): {
  readonly certificate: string;
  readonly key: string;
} {
  const values = secretValues(secret);
  return {
    certificate: values.get(SERVING_KEYS.certificate) ?? '',
    key: values.get(SERVING_KEYS.key) ?? '',
  };
}

/** For a merge patch. The authority's key is no part of it: whoever serves cannot sign. */
export function servingData(leaf: IssuedCertificate, authority: AuthorityCertificate): JsonObject {
  return encoded({
    [SERVING_KEYS.certificate]: leaf.certificate,
    [SERVING_KEYS.key]: leaf.key,
    [SERVING_KEYS.authority]: authority.pem,
  });
}

function authorityValues({ signer, next, previous }: Authorities): Record<string, string | null> {
  const publishedAt = next?.publishedAt;
  return {
    [AUTHORITY_KEYS.signer]: signer?.certificate.pem ?? null,
    [AUTHORITY_KEYS.signerKey]: signer?.key ?? null,
    [AUTHORITY_KEYS.next]: next?.authority.certificate.pem ?? null,
    [AUTHORITY_KEYS.nextKey]: next?.authority.key ?? null,
    [AUTHORITY_KEYS.nextPublishedAt]:
      publishedAt === undefined ? null : new Date(publishedAt).toISOString(),
    [AUTHORITY_KEYS.previous]:
      previous.length === 0 ? null : previous.map(({ pem }) => pem).join(''),
  };
}

function encoded(values: Readonly<Record<string, string | null>>): JsonObject {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [
      key,
      value === null ? null : Buffer.from(value).toString('base64'),
    ]),
  );
}

/** Values that are too long are there, but empty. */
function secretValues(secret: JsonObject | undefined): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const [key, value] of fieldsOf(secret?.data)) {
    const text = textOf(value) ?? '';
    values.set(
      key,
      text.length > MAX_VALUE_LENGTH ? '' : Buffer.from(text, 'base64').toString('utf8'),
    );
  }
  return values;
}
