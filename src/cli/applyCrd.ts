/** Brings the CustomResourceDefinition of the cluster to that of this version, unless something would be lost. */
import { fieldsOf, itemsOf, readMetadata, textOf } from '../boost-engine';
import {
  ApiError,
  CUSTOM_RESOURCE_DEFINITIONS,
  STARTUP_CPU_BOOSTS,
  failureAction,
  identityOf,
  ifThere,
  sleep,
} from '../kube';
import type { Clock, JsonObject, KubeClient, ObjectRef } from '../kube';
import { customResourceDefinition, lostFields, missingVersions } from '../resources';

export interface ApplyCrdOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** What happens to fields of stored boosts that this version does not know. */
  readonly unknownFields: 'Keep' | 'Drop';
  /** Hears what is waited for. */
  readonly onWait: (what: string) => void;
  /** Ends the work. */
  readonly signal: AbortSignal;
}

export interface LossOfBoost {
  readonly namespace: string;
  readonly name: string;
  readonly fields: readonly string[];
}

export type ApplyCrdOutcome =
  /** It is as this version has it, and served. */
  | { readonly kind: 'Created' | 'Updated' | 'Unchanged' }
  /** Objects may be stored in versions that ours cannot read. Nothing was changed. */
  | { readonly kind: 'VersionsMissing'; readonly versions: readonly string[] }
  /** Nothing was changed. */
  | { readonly kind: 'FieldsLost'; readonly boosts: readonly LossOfBoost[] }
  /** The API server took it, and does not serve it, because of another definition. */
  | { readonly kind: 'NotServed'; readonly why: string }
  | { readonly kind: 'Failed'; readonly problem: string };

/** The owner of the fields, in `metadata.managedFields`. */
const FIELD_MANAGER = 'startup-cpu-boost-crd';

const DEFINITION: ObjectRef = {
  ...CUSTOM_RESOURCE_DEFINITIONS,
  name: customResourceDefinition().metadata.name,
};

/** A definition is in force within a second; a retry after a failure waits no longer either. */
const PAUSE_MS = 500;

/** Rights that an installer has just given reach the API server's authorizer within a second or two. */
const MAX_REFUSALS = 20;

/** Rejects only for a mistake of ours. */
export async function applyCrd(options: ApplyCrdOptions): Promise<ApplyCrdOutcome> {
  const { clock, signal, onWait } = options;
  let problem = 'no answer in time';
  for (let refusals = 0; ;) {
    try {
      const step = await applyOnce(options);
      if (step.kind !== 'Waiting') return step;
      problem = step.what;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { kind } = error.failure;
      // What stood in the way until the time was over says more than that it is over.
      if (kind !== 'Cancelled') problem = error.message;
      if (failureAction(error.failure).kind === 'Terminal') refusals += 1;
      if (kind === 'Invalid' || kind === 'BadRequest' || refusals >= MAX_REFUSALS) {
        return { kind: 'Failed', problem };
      }
    }
    if (signal.aborted) return { kind: 'Failed', problem };
    onWait(problem);
    await sleep(clock, PAUSE_MS, signal);
  }
}

type Step = ApplyCrdOutcome | { readonly kind: 'Waiting'; readonly what: string };

async function applyOnce(options: ApplyCrdOptions): Promise<Step> {
  const { client, signal } = options;
  const stored = await ifThere(client.get(DEFINITION, { signal }));
  if (stored !== undefined && readMetadata(stored).isTerminating) {
    return { kind: 'Waiting', what: `${DEFINITION.name} is being deleted, and its boosts with it` };
  }
  const versions = missingVersions(stored);
  if (versions.length > 0) return { kind: 'VersionsMissing', versions };
  if (stored !== undefined && options.unknownFields === 'Keep') {
    const boosts = await boostsWithLosses(client, signal);
    if (boosts.length > 0) return { kind: 'FieldsLost', boosts };
  }
  const applied = await apply(client, stored, signal);
  const served = await untilServed(options);
  if (served !== undefined) return served;
  if (stored === undefined) return { kind: 'Created' };
  const isSame = readMetadata(stored).generation === readMetadata(applied).generation;
  return { kind: isSame ? 'Unchanged' : 'Updated' };
}

/**
 * Server-side, with force: the definition may be there from another installer, whose fields we take
 * over where they are ours to say, and leave where they are not. A conflict if it is not the one that
 * was judged any more.
 */
function apply(
  client: KubeClient,
  stored: JsonObject | undefined,
  signal: AbortSignal,
): Promise<JsonObject> {
  const ours = customResourceDefinition();
  const judged = stored === undefined ? undefined : identityOf(stored);
  const guard =
    judged === undefined ? {} : { uid: judged.uid, resourceVersion: judged.resourceVersion };
  const body = { ...ours, metadata: { ...ours.metadata, ...guard } };
  return client.patch(DEFINITION, { type: 'apply', body, fieldManager: FIELD_MANAGER }, { signal });
}

async function boostsWithLosses(
  client: KubeClient,
  signal: AbortSignal,
): Promise<readonly LossOfBoost[]> {
  const found: LossOfBoost[] = [];
  let token: string | undefined;
  do {
    const from = token === undefined ? {} : { continue: token };
    // A definition that was never served has no boosts.
    const page = await ifThere(client.list(STARTUP_CPU_BOOSTS, { limit: 500, signal, ...from }));
    for (const boost of page?.items ?? []) {
      const fields = lostFields(boost);
      const { namespace = '', name = '' } = readMetadata(boost);
      if (fields.length > 0) found.push({ namespace, name, fields });
    }
    token = page?.continue;
  } while (token !== undefined);
  return found;
}

/** Undefined once the API server answers for boosts. */
async function untilServed(options: ApplyCrdOptions): Promise<Step | undefined> {
  const { client, clock, signal, onWait } = options;
  for (;;) {
    const conditions = conditionsOf(await client.get(DEFINITION, { signal }));
    const names = conditions.get('NamesAccepted');
    if (names?.status === 'False') return { kind: 'NotServed', why: names.message };
    const isEstablished = conditions.get('Established')?.status === 'True';
    if (isEstablished && (await client.serves(STARTUP_CPU_BOOSTS, { signal }))) return undefined;
    onWait('not established yet');
    await sleep(clock, PAUSE_MS, signal);
  }
}

function conditionsOf(
  definition: JsonObject,
): ReadonlyMap<string, { readonly status: string; readonly message: string }> {
  const conditions = itemsOf(fieldsOf(definition.status).get('conditions')).map(fieldsOf);
  const text = (value: unknown): string => textOf(value) ?? '';
  return new Map(
    conditions.map((fields) => [
      text(fields.get('type')),
      { status: text(fields.get('status')), message: text(fields.get('message')) },
    ]),
  );
}
