/** Decides the next single step of the certificates' life from what is stored, trusted and served. */
import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { hasSigned, isSame, readAuthorityCertificates } from './authority';
import type { Authority, AuthorityCertificate } from './authority';
import { bundleText } from './caBundle';
import type { WebhookBundle } from './caBundle';
import { BACKDATED_MS } from './issuer';
import type { Authorities, StoredAuthorities, StoredServing } from './storedCertificates';
import type { ServingCertificate } from './servingCertificate';

export interface RotationSettings {
  /** DNS names and IP addresses that the serving certificate must have. */
  readonly names: readonly string[];
  readonly authorityLifetimeMs: number;
  /** At most that of its authority. */
  readonly servingLifetimeMs: number;
  /** How long API servers may take to hear of a caBundle; they do not acknowledge. */
  readonly publishWaitMs: number;
}

export type Configuration = 'mutating' | 'validating';

export interface CertificateState {
  readonly authorities: StoredAuthorities;
  readonly serving: StoredServing;
  /** Of one webhook each; none where the configuration is not there. */
  readonly bundles: Readonly<Record<Configuration, readonly WebhookBundle[]>>;
  /** Undefined where nobody has asked them yet. */
  readonly endpoints: AdmissionEndpoints | undefined;
}

/** The addresses of the admission Service. */
export interface AdmissionEndpoints {
  /** One for each address that answered. */
  readonly served: readonly X509Certificate[];
  /** How many addresses did not answer, or had no certificate. */
  readonly silent: number;
}

export type StepReason = keyof typeof STEPS;

export type CertificateStep =
  /** Plan again, with what the admission endpoints serve. */
  | { readonly kind: 'AskEndpoints' }
  | {
      readonly kind: 'StoreAuthorities';
      readonly reason: StepReason;
      readonly authorities: Authorities;
      /** A new authority that is to be made, and its place. */
      readonly make: 'Nothing' | 'Signer' | 'Next';
    }
  | {
      readonly kind: 'StoreServing';
      readonly reason: StepReason;
      readonly signer: Authority;
      readonly names: readonly string[];
      /** Epoch milliseconds. */
      readonly notAfter: number;
    }
  | {
      readonly kind: 'PublishBundle';
      readonly reason: StepReason;
      readonly configuration: Configuration;
      readonly text: string;
    }
  /** Nothing is to be done before `until`, epoch milliseconds, unless something changes. */
  | { readonly kind: 'Wait'; readonly until: number };

/** Each reason with its sentence, for the log. */
export const STEPS = {
  FirstAuthority: 'made an authority: there was none',
  AuthorityLost: 'made a new authority: the one that signed what is served is lost',
  AuthorityUnknown: 'took in the authority of what is served, which was not in the CA Secret',
  AuthorityDue: 'made the next authority; it signs when API servers had time to hear of it',
  NoLongerPublished: 'the next authority was taken out of a caBundle: its publication starts again',
  Published: 'the next authority is in every caBundle; API servers now get time to hear of it',
  Switched: 'the next authority signs from now on',
  NoLongerServed: 'dropped previous authorities: no admission endpoint serves what they signed',
  Tidied: 'removed from the CA Secret what is expired, broken or unknown',
  ServingMissing: 'made a serving certificate: there was none that can be used',
  ServingOfOtherAuthority: 'made a serving certificate of the authority that signs now',
  ServingDue: 'renewed the serving certificate',
  ServingNames: 'made a serving certificate with the names that are wanted',
  BundleDiffers: 'wrote the caBundle: another one stood there',
} as const;

/**
 * A process that reaches the API server has a changed Secret after 10 minutes at most, when its
 * watch compares its cache with the server even if every event was lost (CHECK_EVERY_MS of
 * src/kube). Three times that: an endpoint that has not answered us by then does not hold up.
 */
export const SILENT_GRACE_MS = 1_800_000;

/** Between two looks at what the endpoints serve; a rotation ends with the first that is enough. */
const LOOK_EVERY_MS = 2_000;

/** An authority that others still trust leaves after a third of its life: there are two at a time. */
const MAX_PREVIOUS = 8;

/** The names of a Service have six spellings: room for those of a few Services that were before. */
const MAX_OTHER_NAMES = 24;

/** A process that has slept through its deadline looks again soon. */
const SHORTEST_WAIT_MS = 1_000;

interface Situation {
  readonly state: CertificateState;
  readonly settings: RotationSettings;
  readonly now: number;
  /** What of the stored authorities is valid now. */
  readonly known: Authorities;
  /** Valid authorities in the caBundles, whoever put them there. */
  readonly published: readonly AuthorityCertificate[];
  /** The stored serving certificate, if it is valid now. */
  readonly serving: ServingCertificate | undefined;
}

/** In this order: the first that has something to do is the plan. */
const CHECKS: readonly ((situation: Situation) => CertificateStep | undefined)[] = [
  takeInUnknownAuthorities,
  restartPublication,
  publish,
  issueServing,
  countPublication,
  switchAuthority,
  prepareNext,
  dropPrevious,
  tidy,
];

/**
 * Guarantees: repeated, with each step done, it comes to rest from any state; an authority whose
 * certificate is served and trusted leaves the bundle only when it is expired; a new authority signs
 * only after every bundle had it for `publishWaitMs`, unless nothing that is served works anyway.
 * Assumes that the CA Secret was read after the serving Secret and the bundles, and that each write
 * is refused where its object has changed since: then a plan that is out of date does no harm.
 */
export function planCertificates(
  state: CertificateState,
  settings: RotationSettings,
  now: number,
): CertificateStep {
  const { serving } = state;
  const situation: Situation = {
    state,
    settings,
    now,
    known: validAuthorities(state.authorities, now),
    published: [...new Set(allBundles(state).map(({ text }) => text))]
      .flatMap((text) => readAuthorityCertificates(text))
      .filter((each) => isValid(each, now)),
    serving: serving !== undefined && isValid(serving, now) ? serving : undefined,
  };
  for (const check of CHECKS) {
    const step = check(situation);
    if (step !== undefined) return step;
  }
  return wait(situation);
}

/** Whom API servers should trust. */
export function trustedOf({ signer, next, previous }: Authorities): AuthorityCertificate[] {
  return [signer, next?.authority].flatMap((each) => each?.certificate ?? []).concat(previous);
}

/**
 * The CA Secret was lost, or put back from a copy: it does not know who signed what is served. Trust
 * stays where it is needed, and whoever is to sign is published first. Only if nothing that is
 * trusted is served, too, the new authority may sign at once.
 */
function takeInUnknownAuthorities(situation: Situation): CertificateStep | undefined {
  const { known, published, serving, state } = situation;
  const { signer, next, previous } = known;
  const authority = next?.authority ?? signer;
  const trusted = trustedOf(known);
  const unknown = published.filter((each) => !trusted.some((one) => isSame(one, each)));
  const isStored = unknown.some((each) => serving !== undefined && hasSigned(each, serving.x509));
  if (authority !== undefined && !isStored) return undefined;
  if (unknown.length > 0 && state.endpoints === undefined) return { kind: 'AskEndpoints' };
  const needed = [...unknown.filter((each) => isInUse(each, situation)), ...previous];
  if (authority === undefined) return replaceLost(needed);
  const demoted = next !== undefined && signer !== undefined ? [signer.certificate] : [];
  return storeAuthorities('AuthorityUnknown', {
    signer: undefined,
    next: { authority, publishedAt: undefined },
    previous: [...needed, ...demoted],
  });
}

function replaceLost(previous: readonly AuthorityCertificate[]): CertificateStep {
  const authorities = { signer: undefined, next: undefined, previous };
  return previous.length === 0
    ? storeAuthorities('FirstAuthority', authorities, 'Signer')
    : storeAuthorities('AuthorityLost', authorities, 'Next');
}

/** Whether it has signed what is stored to be served, or what is served. */
function isInUse(authority: AuthorityCertificate, { serving, state }: Situation): boolean {
  const stored = serving === undefined ? [] : [serving.x509];
  const served = state.endpoints?.served ?? [];
  return [...stored, ...served].some((leaf) => hasSigned(authority, leaf));
}

/** API servers hear anew what was away, so they get the whole time for it again. */
function restartPublication({ known, state }: Situation): CertificateStep | undefined {
  const { next } = known;
  if (next?.publishedAt === undefined) return undefined;
  const isEverywhere = allBundles(state).every(({ text }) =>
    readAuthorityCertificates(text).some((each) => isSame(each, next.authority.certificate)),
  );
  if (isEverywhere) return undefined;
  return storeAuthorities('NoLongerPublished', {
    ...known,
    next: { ...next, publishedAt: undefined },
  });
}

function publish({ known, state }: Situation): CertificateStep | undefined {
  const text = bundleText(trustedOf(known));
  for (const configuration of ['mutating', 'validating'] as const) {
    if (state.bundles[configuration].some((bundle) => bundle.text !== text)) {
      return { kind: 'PublishBundle', reason: 'BundleDiffers', configuration, text };
    }
  }
  return undefined;
}

function issueServing(situation: Situation): CertificateStep | undefined {
  const { known, serving, settings, now } = situation;
  const { signer } = known;
  if (signer === undefined) return undefined;
  const issue = (reason: StepReason, names = settings.names): CertificateStep => ({
    kind: 'StoreServing',
    reason,
    signer,
    names,
    notAfter: Math.min(now + settings.servingLifetimeMs, signer.certificate.notAfter),
  });
  if (serving === undefined) return issue('ServingMissing');
  if (!hasSigned(signer.certificate, serving.x509)) return issue('ServingOfOtherAuthority');
  if (now >= servingDueAt(serving, signer)) return issue('ServingDue');
  if (settings.names.every((name) => isFor(serving, name))) return undefined;
  // Replicas with other settings, as in a rollout, want other names: without the names that are
  // there, each would undo what the other does.
  const others = namesOf(serving).slice(0, MAX_OTHER_NAMES);
  return issue('ServingNames', [...new Set([...settings.names, ...others])]);
}

function countPublication({ known, settings, now }: Situation): CertificateStep | undefined {
  const { next } = known;
  if (next === undefined || publicationEnd(next.publishedAt, settings, now) !== undefined) {
    return undefined;
  }
  return storeAuthorities('Published', { ...known, next: { ...next, publishedAt: now } });
}

function switchAuthority({ known, settings, now }: Situation): CertificateStep | undefined {
  const { signer, next, previous } = known;
  if (next === undefined) return undefined;
  const end = publicationEnd(next.publishedAt, settings, now) ?? Infinity;
  const nothingWorks = signer === undefined && previous.length === 0;
  if (now < end && !nothingWorks) return undefined;
  return storeAuthorities('Switched', {
    signer: next.authority,
    next: undefined,
    previous: [...(signer === undefined ? [] : [signer.certificate]), ...previous],
  });
}

function prepareNext({ known, now }: Situation): CertificateStep | undefined {
  const { signer, next } = known;
  if (signer === undefined || next !== undefined || now < dueAt(signer.certificate)) {
    return undefined;
  }
  return storeAuthorities('AuthorityDue', known, 'Next');
}

/** The stored serving certificate is the signer's by now; whether it is served, endpoints say. */
function dropPrevious({ known, serving, state, now }: Situation): CertificateStep | undefined {
  const { signer, previous } = known;
  if (previous.length === 0 || signer === undefined || serving === undefined) return undefined;
  const { endpoints } = state;
  if (endpoints === undefined) return { kind: 'AskEndpoints' };
  const { served, silent } = endpoints;
  // No endpoint at all is as good as one that says nothing: the list may not have been read.
  const isUnclear = silent > 0 || served.length === 0;
  const holdsUp = isUnclear && now < issuedAt(serving) + SILENT_GRACE_MS;
  const needed = previous.filter((each) => holdsUp || served.some((leaf) => hasSigned(each, leaf)));
  if (needed.length === previous.length) return undefined;
  return storeAuthorities('NoLongerServed', { ...known, previous: needed });
}

function tidy({ known, state }: Situation): CertificateStep | undefined {
  const { authorities } = state;
  const isTidy =
    !authorities.hasResidue && trustedOf(authorities).length === trustedOf(known).length;
  return isTidy ? undefined : storeAuthorities('Tidied', known);
}

function wait({ known, serving, settings, now }: Situation): CertificateStep {
  const { signer, next, previous } = known;
  const times = [
    ...trustedOf(known).map(({ notAfter }) => notAfter + 1),
    ...(signer === undefined ? [] : [dueAt(signer.certificate)]),
    ...(signer === undefined || serving === undefined ? [] : [servingDueAt(serving, signer)]),
    ...(serving === undefined ? [] : [serving.notAfter + 1]),
    ...(next === undefined ? [] : [publicationEnd(next.publishedAt, settings, now) ?? now]),
    ...(previous.length === 0 ? [] : [now + LOOK_EVERY_MS]),
  ];
  const until = Math.min(...times.filter((time) => time > now));
  return { kind: 'Wait', until: Number.isFinite(until) ? until : now + SHORTEST_WAIT_MS };
}

function storeAuthorities(
  reason: StepReason,
  { signer, next, previous }: Authorities,
  make: 'Nothing' | 'Signer' | 'Next' = 'Nothing',
): CertificateStep {
  // The newest come first, and those that are needed for sure.
  const authorities = { signer, next, previous: previous.slice(0, MAX_PREVIOUS) };
  return { kind: 'StoreAuthorities', reason, authorities, make };
}

function validAuthorities({ signer, next, previous }: Authorities, now: number): Authorities {
  const valid = {
    signer: signer !== undefined && isValid(signer.certificate, now) ? signer : undefined,
    next: next !== undefined && isValid(next.authority.certificate, now) ? next : undefined,
  };
  // Each stands in one place only, or it could be dropped in one and signing in the other.
  const active = trustedOf({ ...valid, previous: [] });
  return {
    signer: valid.signer,
    next:
      active.length === 2 && active.every((each) => isSame(each, active[0] ?? each))
        ? undefined
        : valid.next,
    previous: previous.filter(
      (each) => isValid(each, now) && !active.some((one) => isSame(one, each)),
    ),
  };
}

function allBundles({ bundles }: CertificateState): readonly WebhookBundle[] {
  return [...bundles.mutating, ...bundles.validating];
}

interface Validity {
  readonly notBefore: number;
  readonly notAfter: number;
}

function isValid({ notBefore, notAfter }: Validity, now: number): boolean {
  return notBefore <= now && now <= notAfter;
}

function issuedAt({ notBefore }: Validity): number {
  return notBefore + BACKDATED_MS;
}

/** Two thirds of its life, as cert-manager renews; the last third is for everything that can fail. */
function dueAt(validity: Validity): number {
  return issuedAt(validity) + ((validity.notAfter - issuedAt(validity)) * 2) / 3;
}

/** One that ends with its authority gets no longer by renewal: the next authority's is longer. */
function servingDueAt(serving: ServingCertificate, { certificate }: Authority): number {
  return serving.notAfter >= certificate.notAfter ? Infinity : dueAt(serving);
}

/** Undefined where the wait has not begun, or its beginning can be no time of ours. */
function publicationEnd(
  publishedAt: number | undefined,
  { publishWaitMs }: RotationSettings,
  now: number,
): number | undefined {
  if (publishedAt === undefined || publishedAt > now + publishWaitMs) return undefined;
  return publishedAt + publishWaitMs;
}

/** By the rules of a client, so that the spelling of an address does not matter. */
function isFor({ x509 }: ServingCertificate, name: string): boolean {
  return (isIP(name) === 0 ? x509.checkHost(name) : x509.checkIP(name)) !== undefined;
}

/** What stands in the Secret may be anybody's: only what can be a name again. */
function namesOf({ x509 }: ServingCertificate): readonly string[] {
  return (x509.subjectAltName ?? '')
    .split(', ')
    .map((entry) => entry.replace(/^(DNS|IP Address):/, ''))
    .filter((name) => isIP(name) !== 0 || /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i.test(name));
}
