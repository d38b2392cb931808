/** The Secrets and caBundles as people, tools and enemies may write them. */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { endpointAddresses } from '../../../src/certificates/admissionEndpoints';
import { readAuthorityCertificates } from '../../../src/certificates/authority';
import { bundlePatch, readBundles } from '../../../src/certificates/caBundle';
import { issueAuthority } from '../../../src/certificates/issuer';
import type { IssuedCertificate } from '../../../src/certificates/issuer';
import {
  authorityData,
  readAuthorities,
  readServing,
} from '../../../src/certificates/storedCertificates';
import type { JsonObject } from '../../../src/kube';
import { aCertificate } from '../../support/certificates';
import type { TestCertificate } from '../../support/certificates';
import { patched } from '../../support/patched';

let authority: IssuedCertificate;
let another: IssuedCertificate;
let leaf: TestCertificate;

beforeAll(async () => {
  const request = { now: Date.now(), lifetimeMs: 3_600_000 };
  [authority, another, leaf] = await Promise.all([
    issueAuthority(request),
    issueAuthority(request),
    aCertificate(),
  ]);
});

function secret(texts: Readonly<Record<string, string>>): JsonObject {
  return {
    data: Object.fromEntries(
      Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
    ),
  };
}

describe('the CA Secret', () => {
  it.each<[string, JsonObject | undefined]>([
    ['nothing', undefined],
    ['no data', {}],
    ['data that is no object', { data: 'x' }],
    ['values that are no texts', { data: { 'ca.crt': 1, 'ca.key': { a: [] }, 'next.crt': null } }],
    ['no base64', { data: { 'ca.crt': '%%%', 'ca.key': '\u0000' } }],
    ['a value of a megabyte', { data: { 'previous.crt': 'A'.repeat(2 ** 20) } }],
    ['keys of objects', { data: JSON.parse('{"__proto__": "eA==", "constructor": "eA=="}') }],
  ])('with %s holds no authority, and nothing is thrown', (_what, object) => {
    expect(readAuthorities(object)).toMatchObject({
      signer: undefined,
      next: undefined,
      previous: [],
    });
  });

  it('gives an authority only with its own key', () => {
    const own = { 'ca.crt': authority.certificate, 'ca.key': authority.key };
    expect(readAuthorities(secret(own)).signer).toBeDefined();
    const other = readAuthorities(secret({ ...own, 'ca.key': another.key }));
    expect(other.signer).toBeUndefined();
    // What it has signed may be served all the same.
    expect(other.previous).toHaveLength(1);
    expect(other.hasResidue).toBe(true);
  });

  it('takes no certificate of a server for an authority', () => {
    const stored = readAuthorities(secret({ 'ca.crt': leaf.certificate, 'ca.key': leaf.key }));
    expect(stored).toMatchObject({ signer: undefined, previous: [] });
  });

  it('is not read without end', () => {
    const bundle = `${authority.certificate}${'-----BEGIN CERTIFICATE-----\n'.repeat(1_000)}`;
    expect(readAuthorityCertificates(bundle)).toHaveLength(1);
    expect(readAuthorityCertificates(authority.certificate.repeat(100))).toHaveLength(1);
  });

  it('says whether anything else stands under its keys', () => {
    const clean = {
      'ca.crt': readAuthorityCertificates(authority.certificate)[0]?.pem ?? '',
      'ca.key': authority.key,
    };
    expect(readAuthorities(secret(clean)).hasResidue).toBe(false);
    const published = secret({ ...clean, 'next.published-at': 'x' });
    expect(readAuthorities(published).hasResidue).toBe(true);
    const note = secret({ ...clean, note: 'x' });
    expect(readAuthorities(note).hasResidue).toBe(false);
  });

  it('names every key of ours when it is written, so that nothing old is left', () => {
    const nothing = { signer: undefined, next: undefined, previous: [] };
    expect(authorityData(nothing)).toEqual({
      'ca.crt': null,
      'ca.key': null,
      'next.crt': null,
      'next.key': null,
      'next.published-at': null,
      'previous.crt': null,
    });
  });
});

describe('the serving Secret', () => {
  it('gives a certificate only with its own key', () => {
    const texts = { 'tls.crt': leaf.certificate, 'tls.key': leaf.key };
    expect(readServing(secret(texts))).toMatchObject({ certificate: leaf.certificate });
    expect(readServing(secret({ ...texts, 'tls.key': another.key }))).toBeUndefined();
    expect(readServing(secret({ 'tls.crt': leaf.certificate }))).toBeUndefined();
    expect(readServing(undefined)).toBeUndefined();
  });
});

describe('the caBundles', () => {
  const configuration = {
    metadata: { resourceVersion: '7' },
    webhooks: [
      { name: 'first', clientConfig: { url: 'https://a', caBundle: 'eA==' } },
      { name: 'second', clientConfig: { url: 'https://b' } },
    ],
  };

  it('are read from whatever stands in the configuration', () => {
    expect(readBundles(configuration)).toEqual([
      { webhook: 'first', text: 'x' },
      { webhook: 'second', text: '' },
    ]);
    expect(readBundles(undefined)).toEqual([]);
    expect(readBundles({ webhooks: [null, 'x', { clientConfig: 3 }] })).toHaveLength(3);
    expect(readBundles({ webhooks: { a: 1 } })).toEqual([]);
  });

  it('are written where they differ, and nowhere else', () => {
    const patch = bundlePatch(readBundles(configuration), 'x', '7');
    expect(patched(configuration, patch)).toEqual({
      ...configuration,
      webhooks: [
        configuration.webhooks[0],
        { name: 'second', clientConfig: { url: 'https://b', caBundle: 'eA==' } },
      ],
    });
  });

  it('are not written into another version, nor into another webhook', () => {
    const patch = bundlePatch(readBundles(configuration), 'new', '7');
    const changed = { ...configuration, metadata: { resourceVersion: '8' } };
    expect(() => patched(changed, patch)).toThrow();
    const swapped = { ...configuration, webhooks: configuration.webhooks.slice().reverse() };
    expect(() => patched(swapped, patch)).toThrow();
  });
});

describe('the endpoints of the admission Service', () => {
  it('are every address with every port, each once', () => {
    const slice = {
      ports: [{ port: 9443 }, { port: null }, { port: 70_000 }, 'x'],
      endpoints: [
        { addresses: ['10.0.0.1', '10.0.0.2'], conditions: { ready: false } },
        { addresses: ['10.0.0.1', 'not-an-address', 7] },
        null,
      ],
    };
    expect(endpointAddresses([slice, {}, { endpoints: 'x', ports: 'y' }])).toEqual([
      { host: '10.0.0.1', port: 9443 },
      { host: '10.0.0.2', port: 9443 },
    ]);
  });

  it('are asked within bounds, however many there are', () => {
    const addresses = Array.from(
      { length: 5_000 },
      (_, index) => `10.0.${index >> 8}.${index & 255}`,
    );
    const slice = { ports: [{ port: 1 }], endpoints: [{ addresses }] };
    expect(endpointAddresses([slice])).toHaveLength(100);
  });
});
