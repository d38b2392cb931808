/** Laws of the certificates: any state comes to rest, and no rotation breaks what works. */
import { generateKeyPairSync } from 'node:crypto';
import type { X509Certificate } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { hasSigned, readAuthorityCertificates } from '../../src/certificates/authority';
import type { AuthorityCertificate } from '../../src/certificates/authority';
import { bundleText } from '../../src/certificates/caBundle';
import { takeRound } from '../../src/certificates/certificateRound';
import type { Round } from '../../src/certificates/certificateRound';
import type {
  CertificateSnapshot,
  CertificateStore,
} from '../../src/certificates/certificateStore';
import { issueAuthority, issueLeaf } from '../../src/certificates/issuer';
import type { IssuedCertificate } from '../../src/certificates/issuer';
import { SILENT_GRACE_MS, trustedOf } from '../../src/certificates/rotationPlan';
import type {
  AdmissionEndpoints,
  Configuration,
  RotationSettings,
} from '../../src/certificates/rotationPlan';
import {
  authorityData,
  readAuthorities,
  readServing,
  servingData,
} from '../../src/certificates/storedCertificates';
import type { JsonObject } from '../../src/kube';
import { runs } from '../support/fuzzing';

const START = Date.parse('2026-01-01T00:00:00Z');
const SECOND_MS = 1_000;
const CONFIGURATIONS = ['mutating', 'validating'] as const;

const SETTINGS: RotationSettings = {
  names: ['webhook.boost.svc'],
  authorityLifetimeMs: 150 * SECOND_MS,
  servingLifetimeMs: 75 * SECOND_MS,
  publishWaitMs: 10 * SECOND_MS,
};

type Data = Readonly<Record<string, unknown>>;

/** What an API server stores, as far as it concerns certificates. */
class StoredObjects {
  authorities: Data | undefined;
  serving: Data | undefined;
  bundles: Record<Configuration, string> = { mutating: '', validating: '' };
  readonly versions = { authorities: 0, serving: 0, mutating: 0, validating: 0 };

  /** Merges as a merge patch does; refuses where the version is another. */
  write(which: 'authorities' | 'serving', version: string | undefined, data: JsonObject): void {
    const isThere = this[which] !== undefined;
    if (version !== (isThere ? String(this.versions[which]) : undefined)) throw new Conflict();
    const merged = Object.entries({ ...this[which], ...data }).filter(
      ([, value]) => value !== null,
    );
    this.damage(which, Object.fromEntries(merged));
  }

  publish(which: Configuration, version: string | undefined, text: string): void {
    if (version !== String(this.versions[which])) throw new Conflict();
    this.versions[which] += 1;
    this.bundles = { ...this.bundles, [which]: text };
  }

  damage(which: 'authorities' | 'serving', data: Data | undefined): void {
    this.versions[which] += 1;
    this[which] = data;
  }

  store(
    ask: () => AdmissionEndpoints,
    /** Before each call, for others to come first. */
    gate: () => Promise<void> = () => Promise.resolve(),
  ): CertificateStore {
    const version = (which: 'authorities' | 'serving'): string | undefined =>
      this[which] === undefined ? undefined : String(this.versions[which]);
    return {
      read: async () => {
        await gate();
        const { bundles } = this;
        const serving = readServing({ data: this.serving });
        const versions = {
          serving: version('serving'),
          mutating: String(this.versions.mutating),
          validating: String(this.versions.validating),
        };
        await gate();
        const bundleOf = (which: Configuration) => [{ webhook: which, text: bundles[which] }];
        return {
          state: {
            authorities: readAuthorities({ data: this.authorities }),
            serving,
            bundles: { mutating: bundleOf('mutating'), validating: bundleOf('validating') },
            endpoints: undefined,
          },
          versions: { ...versions, authorities: version('authorities') },
        };
      },
      askEndpoints: async () => {
        await gate();
        return ask();
      },
      storeAuthorities: async ({ versions }, authorities) => {
        await gate();
        this.write('authorities', versions.authorities, authorityData(authorities));
      },
      storeServing: async ({ versions }, leaf, authority) => {
        await gate();
        this.write('serving', versions.serving, servingData(leaf, authority));
      },
      publish: async ({ versions }, configuration, text) => {
        await gate();
        this.publish(configuration, versions[configuration], text);
      },
    };
  }
}

class Conflict extends Error {}

interface Pair extends IssuedCertificate {
  readonly name: string;
}

/** Authorities and certificates of every sort, made once. */
let authorities: readonly Pair[];
let leaves: readonly (Pair & { readonly ca: string })[];

beforeAll(async () => {
  const make = async (name: string, from: number, lifetimeMs: number): Promise<Pair> => ({
    name,
    ...(await issueAuthority({ now: START + from, lifetimeMs })),
  });
  authorities = await Promise.all([
    make('fresh', 0, 300 * SECOND_MS),
    make('another', -20 * SECOND_MS, 300 * SECOND_MS),
    make('due', -250 * SECOND_MS, 300 * SECOND_MS),
    make('ending', -290 * SECOND_MS, 293 * SECOND_MS),
    make('expired', -8_000 * SECOND_MS, 300 * SECOND_MS),
    make('future', 20_000 * SECOND_MS, 300 * SECOND_MS),
    make('lasting', -5 * SECOND_MS, 1e9),
  ]);
  leaves = await Promise.all(
    authorities.map(async (authority) => {
      const names = authority.name === 'another' ? ['other.example'] : SETTINGS.names;
      const notAfter = START + (authority.name === 'due' ? 2 : 100) * SECOND_MS;
      const leaf = await issueLeaf({ authority, names, now: START - 10 * SECOND_MS, notAfter });
      return { ...leaf, name: authority.name, ca: authority.certificate };
    }),
  );
});

const rsa = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});

/** What stands under a key of a Secret, in words that a counterexample can be read by. */
type Text =
  | { readonly of: 'authority' | 'authority key' | 'leaf' | 'leaf key'; readonly index: number }
  | { readonly of: 'authorities'; readonly indexes: readonly number[] }
  | { readonly of: 'half an authority'; readonly length: number }
  | { readonly of: 'an RSA key' }
  | { readonly of: 'anything'; readonly text: string };

const INDEX = fc.nat(6);

const anyText: fc.Arbitrary<Text> = fc.oneof(
  fc.record({
    of: fc.constantFrom(
      'authority' as const,
      'authority key' as const,
      'leaf' as const,
      'leaf key' as const,
    ),
    index: INDEX,
  }),
  fc.record({ of: fc.constant('authorities' as const), indexes: fc.array(INDEX) }),
  fc.record({ of: fc.constant('half an authority' as const), length: fc.nat(400) }),
  fc.constant({ of: 'an RSA key' as const }),
  fc.record({ of: fc.constant('anything' as const), text: fc.string() }),
);

const INDEXED = {
  authority: (index: number) => authorities[index]?.certificate,
  'authority key': (index: number) => authorities[index]?.key,
  leaf: (index: number) => leaves[index]?.certificate,
  'leaf key': (index: number) => leaves[index]?.key,
};

function written(text: Text): string {
  if ('index' in text) return INDEXED[text.of](text.index) ?? '';
  switch (text.of) {
    case 'authorities':
      return text.indexes.map((index) => INDEXED.authority(index) ?? '').join('');
    case 'half an authority':
      return (INDEXED.authority(0) ?? '').slice(0, text.length);
    case 'an RSA key':
      return rsa.privateKey;
    case 'anything':
      return text.text;
  }
}

interface AuthoritySecret {
  readonly signer: number | null;
  readonly next: number | null;
  readonly previous: readonly number[];
  /** Seconds from the start. */
  readonly publishedAt: number | null;
  /** Replaces what the others have written. */
  readonly damaged: Readonly<Record<string, Text>>;
}

const anyAuthoritySecret: fc.Arbitrary<AuthoritySecret | undefined> = fc.option(
  fc.record({
    signer: fc.option(INDEX),
    next: fc.option(INDEX),
    previous: fc.array(INDEX, { maxLength: 4 }),
    publishedAt: fc.option(fc.integer({ min: -100, max: 100 })),
    damaged: fc.dictionary(
      fc.constantFrom(
        'ca.crt',
        'ca.key',
        'next.crt',
        'next.key',
        'next.published-at',
        'previous.crt',
      ),
      anyText,
      { maxKeys: 2 },
    ),
  }),
  { nil: undefined },
);

function authorityDataOf(secret: AuthoritySecret | undefined): Data | undefined {
  if (secret === undefined) return undefined;
  const { signer, next, previous, publishedAt, damaged } = secret;
  const pair = (name: string, index: number | null) =>
    index === null
      ? {}
      : {
          [`${name}.crt`]: written({ of: 'authority', index }),
          [`${name}.key`]: written({ of: 'authority key', index }),
        };
  return encoded({
    ...pair('ca', signer),
    ...pair('next', next),
    'previous.crt': written({ of: 'authorities', indexes: previous }),
    ...(publishedAt === null
      ? {}
      : { 'next.published-at': new Date(START + publishedAt * SECOND_MS).toISOString() }),
    ...Object.fromEntries(Object.entries(damaged).map(([key, text]) => [key, written(text)])),
  });
}

interface LeafSecret {
  readonly leaf: number;
  readonly damaged: Readonly<Record<string, Text>>;
}

const anyServingSecret: fc.Arbitrary<LeafSecret | undefined> = fc.option(
  fc.record({
    leaf: INDEX,
    damaged: fc.dictionary(fc.constantFrom('tls.crt', 'tls.key'), anyText, { maxKeys: 1 }),
  }),
  { nil: undefined },
);

function servingDataOf(secret: LeafSecret | undefined): Data | undefined {
  if (secret === undefined) return undefined;
  const { leaf: index, damaged } = secret;
  return encoded({
    'tls.crt': written({ of: 'leaf', index }),
    'tls.key': written({ of: 'leaf key', index }),
    'ca.crt': leaves[index]?.ca ?? '',
    ...Object.fromEntries(Object.entries(damaged).map(([key, text]) => [key, written(text)])),
  });
}

function encoded(texts: Readonly<Record<string, string>>): Data {
  return Object.fromEntries(
    Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
  );
}

/** More steps than any state needs, times two. */
const STEPS_TO_REST = 40;

/** One keeper, until it has nothing to do for longer than any phase of a rotation takes. */
async function untilAtRest(
  objects: StoredObjects,
  ask: () => AdmissionEndpoints,
  check: (round: Round, now: number) => void,
): Promise<number> {
  let now = START;
  const store = objects.store(ask);
  for (let steps = 0; steps < STEPS_TO_REST; steps += 1) {
    const round = await takeRound({ store, settings: SETTINGS, now: () => now });
    check(round, now);
    if (round.kind === 'Took') continue;
    if (isAtRest(round.snapshot)) return now;
    now = Math.max(round.until, now + 1);
    // Certificates of the first moment do not count as endpoints for ever.
    steps = round.until - now > 60 * SECOND_MS ? steps : Math.min(steps, STEPS_TO_REST - 5);
    if (now > START + SILENT_GRACE_MS + 3_600 * SECOND_MS) break;
  }
  throw new Error(`not at rest after ${(now - START) / SECOND_MS} s`);
}

function isAtRest({ state }: CertificateSnapshot): boolean {
  const { authorities: stored, serving } = state;
  const { signer, next, previous } = stored;
  return (
    signer !== undefined &&
    next === undefined &&
    previous.length === 0 &&
    serving !== undefined &&
    hasSigned(signer.certificate, serving.x509)
  );
}

describe('from any state that the Secrets and caBundles can be in', () => {
  // People, copies, other tools and crashes write there: whatever stands in it must come to an end.
  it('one keeper comes to rest, and on the way no bundle grows and no key leaves the CA Secret', async () => {
    await fc.assert(
      fc.asyncProperty(
        anyAuthoritySecret,
        anyServingSecret,
        fc.tuple(anyText, anyText),
        fc.array(fc.nat(6), { maxLength: 3 }),
        async (authoritySecret, servingSecret, [mutating, validating], served) => {
          const objects = new StoredObjects();
          objects.authorities = authorityDataOf(authoritySecret);
          objects.serving = servingDataOf(servingSecret);
          objects.bundles = { mutating: written(mutating), validating: written(validating) };
          const first = served.flatMap(
            (leaf) => readServing({ data: servingDataOf({ leaf, damaged: {} }) })?.x509 ?? [],
          );
          const ask = (): AdmissionEndpoints => {
            const current = readServing({ data: objects.serving })?.x509;
            return { served: current === undefined ? first : [current], silent: 0 };
          };
          const signingKeys = new Set<string>();

          const restsAt = await untilAtRest(objects, ask, (round, now) => {
            if (round.kind !== 'Took') return;
            for (const { key } of heldKeys(objects)) signingKeys.add(key);
            for (const which of CONFIGURATIONS) {
              if (round.step.kind === 'PublishBundle' && round.step.configuration === which) {
                const trusted = readAuthorityCertificates(objects.bundles[which]);
                expect(trusted.length).toBeLessThanOrEqual(2 + 16);
                for (const { notAfter } of trusted) expect(notAfter).toBeGreaterThanOrEqual(now);
              }
            }
            if (round.step.kind === 'StoreServing') {
              const texts = Object.values(objects.serving ?? {})
                .map(textOf)
                .join();
              for (const key of signingKeys) expect(texts).not.toContain(key);
              expect(textOf(objects.serving?.['ca.crt'])).not.toContain('PRIVATE KEY');
            }
          });

          const { signer, hasResidue } = readAuthorities({ data: objects.authorities });
          expect(hasResidue).toBe(false);
          expect(signer?.certificate.notAfter).toBeGreaterThan(restsAt);
          const serving = readServing({ data: objects.serving });
          expect(serving?.notAfter).toBeGreaterThan(restsAt);
          expect(serving?.x509.checkHost('webhook.boost.svc')).toBeDefined();
          for (const which of CONFIGURATIONS) {
            expect(objects.bundles[which]).toBe(signer?.certificate.pem);
          }
        },
      ),
      runs(0.5),
    );
  }, 600_000);

  // Written and read again it is the same: else two keepers would correct each other for ever.
  it('what is read is written as it is read', () => {
    fc.assert(
      fc.property(anyAuthoritySecret, (secret) => {
        const objects = new StoredObjects();
        objects.authorities = authorityDataOf(secret);
        const read = readAuthorities({ data: objects.authorities });
        objects.write('authorities', secret === undefined ? undefined : '0', authorityData(read));
        const again = readAuthorities({ data: objects.authorities });
        expect(again.hasResidue).toBe(false);
        expect(names(again)).toEqual(names(read));
      }),
      runs(0.7),
    );
  });
});

function names(stored: ReturnType<typeof readAuthorities>) {
  return {
    all: trustedOf(stored).map(({ fingerprint }) => fingerprint),
    publishedAt: stored.next?.publishedAt,
  };
}

function heldKeys(objects: StoredObjects) {
  const { signer, next } = readAuthorities({ data: objects.authorities });
  return [signer, next?.authority].flatMap((each) => each ?? []);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? Buffer.from(value, 'base64').toString() : '';
}

/** Some rounds of five calls at most each; the first may belong to an old plan, refused or done. */
const CALLS_TO_SETTLE = 20;

type Command =
  /** A keeper gets as far as its next call of the API server. */
  | { readonly kind: 'Go'; readonly keeper: number }
  | { readonly kind: 'Die'; readonly keeper: number }
  | { readonly kind: 'Pass'; readonly seconds: number }
  | { readonly kind: 'EndpointHears' | 'EndpointStarts'; readonly endpoint: number }
  | { readonly kind: 'ServerHears'; readonly server: number }
  | { readonly kind: 'Lose'; readonly what: 'authorities' | 'serving' };

const COMMANDS: fc.Arbitrary<Command> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ kind: fc.constant('Go' as const), keeper: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('Die' as const), keeper: fc.nat(2) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('Pass' as const),
      seconds: fc.integer({ min: 1, max: 6 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('EndpointHears' as const, 'EndpointStarts' as const),
      endpoint: fc.nat(1),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('ServerHears' as const), server: fc.nat(1) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('Lose' as const),
      what: fc.constantFrom('authorities' as const, 'serving' as const),
    }),
  },
);

/** A keeper that goes on only when it is told to, one call of the API server at a time. */
class SteppedKeeper {
  readonly #takeRound: (gate: () => Promise<void>) => Promise<Round>;
  #release: () => void = () => undefined;
  #arrived: Promise<void>;
  #arrive: () => void = () => undefined;
  #isDead = false;
  #isResting = false;

  constructor(round: (gate: () => Promise<void>) => Promise<Round>) {
    this.#takeRound = round;
    this.#arrived = new Promise((resolve) => (this.#arrive = resolve));
    void this.#run();
  }

  async go(): Promise<void> {
    await this.#arrived;
    this.#arrived = new Promise((resolve) => (this.#arrive = resolve));
    this.#release();
    await this.#arrived;
  }

  /** Until it finds nothing to do. */
  async settle(): Promise<void> {
    this.#isResting = false;
    for (let calls = 0; calls < CALLS_TO_SETTLE && !this.#rests(); calls += 1) await this.go();
  }

  #rests(): boolean {
    return this.#isResting;
  }

  die(): void {
    this.#isDead = true;
  }

  async #run(): Promise<void> {
    while (!this.#isDead) {
      try {
        this.#isResting = (await this.#takeRound(() => this.#gate())).kind === 'Rested';
      } catch (error) {
        if (!(error instanceof Conflict)) throw error;
      }
    }
  }

  #gate(): Promise<void> {
    const released = new Promise<void>((resolve) => (this.#release = resolve));
    this.#arrive();
    return released;
  }
}

/** Three keepers, two admission endpoints and two API servers, each behind the others by as much as is allowed. */
class Cluster {
  readonly objects = new StoredObjects();
  now = START;
  readonly #endpoints: { leaf: X509Certificate | undefined; heardAt: number }[] = [];
  readonly #servers: { bundles: Record<Configuration, string>; heardAt: number }[] = [];
  readonly keepers: SteppedKeeper[];

  constructor() {
    for (let index = 0; index < 2; index += 1) {
      this.#endpoints.push({ leaf: undefined, heardAt: this.now });
      this.#servers.push({ bundles: this.objects.bundles, heardAt: this.now });
    }
    this.keepers = [0, 1, 2].map(() => this.#newKeeper());
  }

  #newKeeper(): SteppedKeeper {
    const ask = (): AdmissionEndpoints => {
      const served = this.#endpoints.flatMap(({ leaf }) => leaf ?? []);
      return { served, silent: this.#endpoints.length - served.length };
    };
    return new SteppedKeeper((gate) =>
      takeRound({ store: this.objects.store(ask, gate), settings: SETTINGS, now: () => this.now }),
    );
  }

  async obey(command: Command): Promise<void> {
    switch (command.kind) {
      case 'Go':
        return this.keepers[command.keeper]?.go();
      case 'Die':
        // Its call that is under way may have been done, or not: `Go` before says which.
        this.keepers[command.keeper]?.die();
        this.keepers[command.keeper] = this.#newKeeper();
        return;
      case 'Pass':
        return this.#pass(command.seconds);
      case 'EndpointHears':
      case 'EndpointStarts':
        this.#endpointHears(command.endpoint);
        return;
      case 'ServerHears':
        this.#serverHears(command.server);
        return;
      case 'Lose':
        this.objects.damage(command.what, undefined);
    }
  }

  /** Time passes for all: who would be too late hears first, and keepers get on as far as they can. */
  async #pass(seconds: number): Promise<void> {
    this.now += seconds * SECOND_MS;
    this.#servers.forEach(({ heardAt }, index) => {
      if (this.now - heardAt > SETTINGS.publishWaitMs - 6 * SECOND_MS) this.#serverHears(index);
    });
    this.#endpoints.forEach(({ heardAt }, index) => {
      if (this.now - heardAt > 8 * SECOND_MS) this.#endpointHears(index);
    });
    await this.settle();
  }

  async settle(): Promise<void> {
    for (const keeper of this.keepers) await keeper.settle();
  }

  hearAll(): void {
    for (const index of [0, 1]) {
      this.#serverHears(index);
      this.#endpointHears(index);
    }
  }

  #endpointHears(index: number): void {
    const serving = readServing({ data: this.objects.serving });
    const endpoint = this.#endpoints[index];
    if (endpoint === undefined) return;
    endpoint.heardAt = this.now;
    if (serving !== undefined && serving.notAfter > this.now) endpoint.leaf = serving.x509;
  }

  #serverHears(index: number): void {
    this.#servers[index] = { bundles: this.objects.bundles, heardAt: this.now };
  }

  /** Signatures do not change, and are dear to verify. */
  readonly #signed = new Map<string, boolean>();
  readonly #parsed = new Map<string, readonly AuthorityCertificate[]>();

  #hasSigned(authority: AuthorityCertificate, leaf: X509Certificate): boolean {
    const key = `${authority.fingerprint} ${leaf.fingerprint256}`;
    const known = this.#signed.get(key) ?? hasSigned(authority, leaf);
    this.#signed.set(key, known);
    return known;
  }

  #read(bundle: string): readonly AuthorityCertificate[] {
    const read = this.#parsed.get(bundle) ?? readAuthorityCertificates(bundle);
    this.#parsed.set(bundle, read);
    return read;
  }

  /** Handshakes that fail at this moment, of every API server with every endpoint. */
  failures(): readonly string[] {
    return this.#servers.flatMap(({ bundles }, server) =>
      CONFIGURATIONS.flatMap((which) =>
        this.#endpoints.flatMap(({ leaf }, endpoint) => {
          const trusted = this.#read(bundles[which]).filter(
            ({ notBefore, notAfter }) => notBefore <= this.now && this.now <= notAfter,
          );
          const isGood =
            leaf !== undefined &&
            Date.parse(leaf.validTo) >= this.now &&
            trusted.some((authority) => this.#hasSigned(authority, leaf));
          return isGood ? [] : [`${which} webhook of server ${server} at endpoint ${endpoint}`];
        }),
      ),
    );
  }
}

describe('while keepers come, go and overtake each other', () => {
  // The promise: from the first certificate on, every handshake succeeds, whoever hears of what how
  // late, through any number of rotations and the loss of either Secret.
  it('no API server ever fails a handshake, and in the end there is one authority', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(COMMANDS, { minLength: 20, maxLength: 150 }), async (commands) => {
        const cluster = new Cluster();
        for (let round = 0; round < 4; round += 1) await cluster.settle();
        cluster.hearAll();
        expect(cluster.failures()).toEqual([]);

        for (const command of commands) {
          await cluster.obey(command);
          expect(cluster.failures()).toEqual([]);
        }

        for (let passes = 0; passes < 12; passes += 1) {
          await cluster.obey({ kind: 'Pass', seconds: 6 });
          expect(cluster.failures()).toEqual([]);
        }
        const { signer, next, previous } = readAuthorities({ data: cluster.objects.authorities });
        const trusted = trustedOf({ signer, next, previous });
        expect(signer).toBeDefined();
        expect(trusted.length).toBeLessThanOrEqual(3);
        expect(cluster.objects.bundles.mutating).toBe(bundleText(trusted));
        for (const keeper of cluster.keepers) keeper.die();
      }),
      runs(0.15),
    );
  }, 600_000);
});
