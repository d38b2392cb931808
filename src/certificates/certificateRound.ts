/** One round of a keeper: reads what is there, plans one step, takes it. */
import { readAuthority } from './authority';
import type { CertificateSnapshot, CertificateStore } from './certificateStore';
import { issueAuthority, issueLeaf } from './issuer';
import { planCertificates } from './rotationPlan';
import type { CertificateStep, RotationSettings } from './rotationPlan';
import type { Authorities } from './storedCertificates';

export type Round =
  | {
      readonly kind: 'Took';
      readonly step: WritingStep;
      readonly snapshot: CertificateSnapshot;
    }
  /** Nothing is to be done before `until`, epoch milliseconds, unless something changes. */
  | { readonly kind: 'Rested'; readonly until: number; readonly snapshot: CertificateSnapshot };

export interface RoundOptions {
  readonly store: CertificateStore;
  readonly settings: RotationSettings;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

type WritingStep = Exclude<CertificateStep, { readonly kind: 'Wait' | 'AskEndpoints' }>;

/** Rejects with what the store rejects with; then nothing was written, or nobody knows. */
export async function takeRound({ store, settings, now }: RoundOptions): Promise<Round> {
  const snapshot = await store.read();
  let step = planCertificates(snapshot.state, settings, now());
  if (step.kind === 'AskEndpoints') {
    const endpoints = await store.askEndpoints();
    step = planCertificates({ ...snapshot.state, endpoints }, settings, now());
  }
  switch (step.kind) {
    case 'AskEndpoints':
      throw new Error('the plan asks again what it was told');
    case 'Wait':
      return { kind: 'Rested', until: step.until, snapshot };
    case 'StoreAuthorities':
      await store.storeAuthorities(snapshot, await withNewAuthority(step, settings, now()));
      break;
    case 'StoreServing': {
      const { signer, names, notAfter } = step;
      const authority = { certificate: signer.certificate.pem, key: signer.key };
      const leaf = await issueLeaf({ authority, names, notAfter, now: now() });
      await store.storeServing(snapshot, leaf, signer.certificate);
      break;
    }
    case 'PublishBundle':
      await store.publish(snapshot, step.configuration, step.text);
      break;
  }
  return { kind: 'Took', step, snapshot };
}

async function withNewAuthority(
  { authorities, make }: Extract<CertificateStep, { readonly kind: 'StoreAuthorities' }>,
  { authorityLifetimeMs: lifetimeMs }: RotationSettings,
  now: number,
): Promise<Authorities> {
  if (make === 'Nothing') return authorities;
  const made = await issueAuthority({ now, lifetimeMs });
  const authority = readAuthority(made.certificate, made.key);
  if (authority === undefined) throw new Error('the authority that was made cannot be read');
  return make === 'Signer'
    ? { ...authorities, signer: authority }
    : { ...authorities, next: { authority, publishedAt: undefined } };
}
