/** A StartupCPUBoost, compiled once per generation so that decisions need no parsing. */
import { compileContainerMatcher, matchesContainer } from './containerMatcher';
import type { ContainerMatcher } from './containerMatcher';
import { compileDurationPolicy } from './durationPolicy';
import type { DurationPolicy } from './durationPolicy';
import { IssueList } from './issue';
import type { Issue } from './issue';
import { fieldsOf, itemsOf } from './json';
import { readMetadata } from './pod';
import { compileResourcePolicy, CPU_LIMITS } from './resourcePolicy';
import type { CpuLimits, ResourcePolicy } from './resourcePolicy';
import { compileSelector } from './selector';
import type { Selector } from './selector';

export interface BoostIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string | undefined;
  readonly generation: number | undefined;
  /** Epoch milliseconds. */
  readonly createdAt: number | undefined;
}

export interface ContainerPolicy {
  readonly matcher: ContainerMatcher;
  readonly resources: ResourcePolicy;
}

export interface ValidBoost extends BoostIdentity {
  readonly kind: 'Valid';
  readonly selector: Selector;
  /** In the order of the manifest: the first policy that matches a container is the one it gets. */
  readonly policies: readonly ContainerPolicy[];
  /** What becomes of CPU limits; absent where the boost leaves that to the operator's settings. */
  readonly cpuLimits?: CpuLimits;
  readonly duration: DurationPolicy;
  /** A pod that could push others off their node is boosted at creation all the same. */
  readonly allowsPreemption: boolean;
}

/** A stored boost that today's rules refuse: it boosts nothing, and its status says why. */
export interface InvalidBoost extends BoostIdentity {
  readonly kind: 'Invalid';
  readonly issues: readonly Issue[];
}

export type CompiledBoost = ValidBoost | InvalidBoost;

/** The boost's name becomes the value of a label on its pods. */
const MAX_NAME_LENGTH = 63;

/** Compiles a StartupCPUBoost from plain JSON; never throws. */
export function compileBoost(boost: unknown): CompiledBoost {
  const root = fieldsOf(boost);
  const identity = readIdentity(boost);
  const spec = fieldsOf(root.get('spec'));
  const issues = new IssueList();
  if (identity.name === '' || identity.name.length > MAX_NAME_LENGTH) {
    issues.add('metadata.name', `must have 1 to ${MAX_NAME_LENGTH} characters to be a label value`);
  }
  if (spec.has('selector')) {
    issues.add('spec.selector', 'must stand at the top level, beside spec');
  }
  const selector = compileSelector(root.get('selector'), 'selector', issues);
  const resourcePolicy = fieldsOf(spec.get('resourcePolicy'));
  const policies = compilePolicies(resourcePolicy, issues);
  const cpuLimits = compileCpuLimits(resourcePolicy.get('cpuLimits'), issues);
  const duration = compileDurationPolicy(spec.get('durationPolicy'), 'spec.durationPolicy', issues);
  const allowsPreemption = spec.get('allowPreemption') ?? false;
  if (typeof allowsPreemption !== 'boolean') {
    issues.add('spec.allowPreemption', 'must be true or false');
  }
  return issues.all.length > 0
    ? { kind: 'Invalid', ...identity, issues: issues.all }
    : {
        kind: 'Valid',
        ...identity,
        selector,
        policies,
        ...(cpuLimits === undefined ? {} : { cpuLimits }),
        duration,
        allowsPreemption: allowsPreemption === true,
      };
}

/** The policy that a container gets: the first one that matches its name. */
export function policyFor(boost: ValidBoost, containerName: string): ContainerPolicy | undefined {
  return boost.policies.find((policy) => matchesContainer(policy.matcher, containerName));
}

function readIdentity(boost: unknown): BoostIdentity {
  const { namespace = '', name = '', uid, generation, createdAt } = readMetadata(boost);
  return { namespace, name, uid, generation, createdAt };
}

function compilePolicies(
  resourcePolicy: ReadonlyMap<string, unknown>,
  issues: IssueList,
): ContainerPolicy[] {
  const path = 'spec.resourcePolicy.containerPolicies';
  const policies = itemsOf(resourcePolicy.get('containerPolicies'));
  if (policies.length === 0) issues.add(path, 'needs at least one policy');
  return policies.flatMap((policy, index) => {
    const matcher = compileContainerMatcher(policy, `${path}[${index}]`, issues);
    const resources = compileResourcePolicy(policy, `${path}[${index}]`, issues);
    return matcher === undefined || resources === undefined ? [] : [{ matcher, resources }];
  });
}

function compileCpuLimits(value: unknown, issues: IssueList): CpuLimits | undefined {
  const cpuLimits = CPU_LIMITS.find((known) => known === value);
  if (cpuLimits === undefined && value !== undefined && value !== null) {
    issues.add('spec.resourcePolicy.cpuLimits', `must be one of ${CPU_LIMITS.join(', ')}`);
  }
  return cpuLimits;
}
