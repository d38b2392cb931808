/** The plan of the certificates, one situation after the other. */
import { beforeAll, describe, expect, it } from '@jest/globals';
import { readAuthority } from '../../../src/certificates/authority';
import type { Authority } from '../../../src/certificates/authority';
import { bundleText } from '../../../src/certificates/caBundle';
import { issueAuthority, issueLeaf } from '../../../src/certificates/issuer';
import {
  SILENT_GRACE_MS,
  planCertificates,
  trustedOf,
} from '../../../src/certificates/rotationPlan';
import type { CertificateState, RotationSettings } from '../../../src/certificates/rotationPlan';
import type { Authorities } from '../../../src/certificates/storedCertificates';
import type { ServingCertificate } from '../../../src/certificates';
import { readable } from '../../support/certificates';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NAME = 'webhook.boost.svc';

const SETTINGS: RotationSettings = {
  names: [NAME],
  authorityLifetimeMs: 300 * DAY_MS,
  servingLifetimeMs: 90 * DAY_MS,
  publishWaitMs: 60_000,
};

let old: Authority;
let young: Authority;
let third: Authority;
let oldLeaf: ServingCertificate;
let youngLeaf: ServingCertificate;

beforeAll(async () => {
  [old, young, third] = await Promise.all([
    anAuthority(NOW - DAY_MS),
    anAuthority(NOW),
    anAuthority(NOW),
  ]);
  [oldLeaf, youngLeaf] = await Promise.all([aLeaf(old), aLeaf(young)]);
});

async function anAuthority(now: number): Promise<Authority> {
  const made = await issueAuthority({ now, lifetimeMs: 300 * DAY_MS });
  const authority = readAuthority(made.certificate, made.key);
  if (authority === undefined) throw new Error('the authority cannot be read');
  return authority;
}

async function aLeaf(
  { certificate, key }: Authority,
  { names = [NAME], notAfter = NOW + 90 * DAY_MS } = {},
): Promise<ServingCertificate> {
  const authority = { certificate: certificate.pem, key };
  return readable(await issueLeaf({ authority, names, now: NOW, notAfter }));
}

interface StateOptions extends Partial<Authorities> {
  readonly serving?: ServingCertificate | undefined;
  /** Of both configurations; what should be there unless given. */
  readonly bundle?: string;
  readonly endpoints?: CertificateState['endpoints'];
  readonly hasResidue?: boolean;
}

function aState(options: StateOptions): CertificateState {
  const { signer, next, previous = [], serving, endpoints, hasResidue = false } = options;
  const authorities = { signer, next, previous };
  const text = options.bundle ?? bundleText(trustedOf(authorities));
  return {
    authorities: { ...authorities, hasResidue },
    serving,
    bundles: {
      mutating: [{ webhook: 'pods', text }],
      validating: [{ webhook: 'boosts', text }],
    },
    endpoints,
  };
}

function plan(options: StateOptions, now = NOW) {
  return planCertificates(aState(options), SETTINGS, now);
}

describe('where nothing is stored', () => {
  it('an authority is made that signs at once, since nobody trusts another', () => {
    expect(plan({})).toMatchObject({ reason: 'FirstAuthority', make: 'Signer' });
  });

  it('the endpoints are asked first if API servers trust somebody', () => {
    const bundle = bundleText([old.certificate]);
    expect(plan({ bundle })).toEqual({ kind: 'AskEndpoints' });
    expect(plan({ bundle, endpoints: { served: [], silent: 1 } })).toMatchObject({
      reason: 'FirstAuthority',
    });
    expect(plan({ bundle, endpoints: { served: [oldLeaf.x509], silent: 0 } })).toMatchObject({
      reason: 'AuthorityLost',
      make: 'Next',
      authorities: { signer: undefined, previous: [{ fingerprint: old.certificate.fingerprint }] },
    });
  });

  it('a bundle that is no PEM asks for nothing', () => {
    expect(plan({ bundle: 'rubbish' })).toMatchObject({ reason: 'FirstAuthority' });
  });
});

describe('an authority that is to follow', () => {
  it('is made when two thirds of the life of the one before are over', () => {
    const state = { signer: old, serving: oldLeaf };
    const dueAt = NOW - DAY_MS + 200 * DAY_MS;
    // The serving certificate is none of this test's business.
    const leaf = { ...oldLeaf, notAfter: old.certificate.notAfter };
    expect(plan({ ...state, serving: leaf }, dueAt - 1)).toEqual({ kind: 'Wait', until: dueAt });
    expect(plan({ ...state, serving: leaf }, dueAt)).toMatchObject({
      reason: 'AuthorityDue',
      make: 'Next',
    });
  });

  it('is published before anything else, and the time that it has been counts from then', () => {
    const next = { authority: young, publishedAt: undefined };
    const state = { signer: old, next, serving: oldLeaf };
    expect(plan({ ...state, bundle: bundleText([old.certificate]) })).toMatchObject({
      kind: 'PublishBundle',
      configuration: 'mutating',
      text: bundleText([young.certificate, old.certificate]),
    });
    expect(plan(state)).toMatchObject({
      reason: 'Published',
      authorities: { next: { publishedAt: NOW } },
    });
  });

  it('signs when API servers had the time to hear of it, and no moment sooner', () => {
    const next = { authority: young, publishedAt: NOW };
    const state = { signer: old, next, serving: oldLeaf };
    expect(plan(state, NOW + 59_999)).toEqual({ kind: 'Wait', until: NOW + 60_000 });
    expect(plan(state, NOW + 60_000)).toMatchObject({
      reason: 'Switched',
      authorities: { signer: young, next: undefined, previous: [old.certificate] },
    });
  });

  it('waits again, for the whole time, where it was taken out of a bundle', () => {
    const next = { authority: young, publishedAt: NOW };
    const state = { signer: old, next, serving: oldLeaf };
    expect(plan({ ...state, bundle: '' }, NOW + 60_000)).toMatchObject({
      reason: 'NoLongerPublished',
      authorities: { next: { publishedAt: undefined } },
    });
  });

  it('does not wait for a time that no clock of ours can have written', () => {
    const next = { authority: young, publishedAt: NOW + DAY_MS };
    expect(plan({ signer: old, next, serving: oldLeaf })).toMatchObject({
      reason: 'Published',
      authorities: { next: { publishedAt: NOW } },
    });
  });

  it('signs at once where nothing works that could be broken', () => {
    const next = { authority: young, publishedAt: undefined };
    const published = plan({ next });
    expect(published).toMatchObject({ reason: 'Published' });
    expect(plan({ next: { ...next, publishedAt: NOW } })).toMatchObject({ reason: 'Switched' });
  });
});

describe('a serving certificate', () => {
  it.each<[string, () => StateOptions]>([
    ['ServingMissing', () => ({ signer: young })],
    ['ServingMissing', () => ({ signer: young, serving: { ...youngLeaf, notAfter: NOW - 1 } })],
    ['ServingOfOtherAuthority', () => ({ signer: young, serving: oldLeaf })],
  ])('is made: %s', (reason, state) => {
    expect(plan(state())).toMatchObject({
      kind: 'StoreServing',
      reason,
      signer: young,
      names: [NAME],
      notAfter: NOW + 90 * DAY_MS,
    });
  });

  it('is renewed when two thirds of its life are over', () => {
    const state = { signer: young, serving: youngLeaf };
    expect(plan(state, NOW + 60 * DAY_MS - 1)).toEqual({
      kind: 'Wait',
      until: NOW + 60 * DAY_MS,
    });
    expect(plan(state, NOW + 60 * DAY_MS)).toMatchObject({ reason: 'ServingDue' });
  });

  it('ends with its authority, and is then not renewed over and over', async () => {
    const end = young.certificate.notAfter;
    const late = end - 100 * DAY_MS + 50 * DAY_MS;
    expect(plan({ signer: young, serving: undefined }, late)).toMatchObject({ notAfter: end });
    const serving = await aLeaf(young, { notAfter: end });
    const next = { authority: third, publishedAt: late };
    expect(plan({ signer: young, serving, next }, late)).toMatchObject({ kind: 'Wait' });
  });

  it('gets a name that is wanted, and keeps those that another replica may want', async () => {
    const serving = await aLeaf(young, { names: ['other.boost.svc', '10.0.0.7'] });
    expect(plan({ signer: young, serving })).toMatchObject({
      reason: 'ServingNames',
      names: [NAME, 'other.boost.svc', '10.0.0.7'],
    });
    const both = await aLeaf(young, { names: [NAME, 'other.boost.svc'] });
    expect(plan({ signer: young, serving: both })).toMatchObject({ kind: 'Wait' });
  });
});

describe('a previous authority', () => {
  const state = (): StateOptions => ({
    signer: young,
    previous: [old.certificate],
    serving: youngLeaf,
  });

  it('stays while an endpoint serves what it has signed, however long that takes', () => {
    expect(plan(state())).toEqual({ kind: 'AskEndpoints' });
    const endpoints = { served: [youngLeaf.x509, oldLeaf.x509], silent: 0 };
    expect(plan({ ...state(), endpoints }, NOW + 10 * SILENT_GRACE_MS)).toMatchObject({
      kind: 'Wait',
    });
  });

  it('goes when every endpoint serves what the new one has signed', () => {
    const endpoints = { served: [youngLeaf.x509, youngLeaf.x509], silent: 0 };
    expect(plan({ ...state(), endpoints })).toMatchObject({
      reason: 'NoLongerServed',
      authorities: { signer: young, previous: [] },
    });
  });

  it.each([
    ['an endpoint that does not answer', { silent: 1 }],
    ['endpoints that are not there', { silent: 0 }],
  ])('is held up by %s, but not for ever', (_what, { silent }) => {
    const endpoints = { served: silent === 0 ? [] : [youngLeaf.x509], silent };
    expect(plan({ ...state(), endpoints }, NOW + SILENT_GRACE_MS - 1)).toMatchObject({
      kind: 'Wait',
    });
    expect(plan({ ...state(), endpoints }, NOW + SILENT_GRACE_MS)).toMatchObject({
      reason: 'NoLongerServed',
    });
  });

  it('leaves the bundle when it has expired', () => {
    const now = old.certificate.notAfter + 1;
    expect(plan(state(), now)).toMatchObject({
      kind: 'PublishBundle',
      text: bundleText([young.certificate]),
    });
  });
});

describe('a CA Secret that does not know who signed what is stored and trusted', () => {
  const endpoints = () => ({ served: [oldLeaf.x509], silent: 0 });

  it('takes it in, and publishes its own authority first', () => {
    const bundle = bundleText([old.certificate]);
    const state = { signer: young, serving: oldLeaf, bundle, endpoints: endpoints() };
    expect(plan(state)).toMatchObject({
      reason: 'AuthorityUnknown',
      make: 'Nothing',
      authorities: {
        signer: undefined,
        next: { authority: young, publishedAt: undefined },
        previous: [{ fingerprint: old.certificate.fingerprint }],
      },
    });
  });

  it('does not take in whom no API server trusts: that would only widen the trust', () => {
    const bundle = bundleText([young.certificate]);
    expect(plan({ signer: young, serving: oldLeaf, bundle })).toMatchObject({
      reason: 'ServingOfOtherAuthority',
    });
  });
});

describe('a bundle', () => {
  it('is written where it differs, one configuration after the other', () => {
    const state = aState({ signer: young, serving: youngLeaf });
    const bundles = { ...state.bundles, validating: [{ webhook: 'boosts', text: 'foreign' }] };
    expect(planCertificates({ ...state, bundles }, SETTINGS, NOW)).toMatchObject({
      kind: 'PublishBundle',
      configuration: 'validating',
    });
  });

  it('that cannot be written to, since no configuration is there, holds nothing up', () => {
    const state = aState({ signer: young });
    const bundles = { mutating: [], validating: [] };
    expect(planCertificates({ ...state, bundles }, SETTINGS, NOW)).toMatchObject({
      kind: 'StoreServing',
    });
  });
});

it('what is broken or unknown under our keys is removed when all else is done', () => {
  const state = { signer: young, serving: youngLeaf, hasResidue: true };
  expect(plan(state)).toMatchObject({ reason: 'Tidied', authorities: { signer: young } });
});
