/** Every reason code, with the sentence that explains it to a person. */

/** Why a whole pod is left as it was. */
export const POD_SKIPS = {
  MalformedPod: 'the pod has containers without a name, or two of the same name',
  NoBoostMatches: 'no boost of the namespace selects the pod',
  StaticPod: 'static pods and their mirrors cannot be resized',
  WindowsPod: 'Windows pods cannot be resized',
  TooManyContainers: 'the pod has more containers than are judged',
  SystemCritical: 'raising a pod of a system-critical class in place could evict others',
  NodeNameSet: 'the pod names its node and so skips the scheduler, which would check for room',
  PodLevelResources: 'the pod has resources of its own, beside those of its containers',
  ResourceClaims: 'pods with resource claims cannot be resized',
  GuaranteedPod: 'its QoS class is Guaranteed, and BOOST_GUARANTEED=false leaves such pods alone',
  NotRevertible: 'the boost could not be taken back: its condition Revertible says why',
  NoController: 'no controller has held the Lease for long, so nobody would take the boost back',
  BoostedByOther: 'the record on the pod was written by another boost operator',
  NoRoomForRecord: 'the record of the boost would make its annotations too long',
  NoContainerBoosted: 'no container of the pod can be boosted',
  LimitRangeWouldChangePod:
    'a LimitRange made after the pod would add its defaults, which nobody can take off again',
  NoRoomOnNode: 'its node has no room for the pod with its boost',
  RaiseRefused: 'the API server refuses to raise its CPU in place',
  ChangedByOther: 'somebody else has changed its CPU meanwhile',
} as const;
export type PodSkipCode = keyof typeof POD_SKIPS;

/** Why a pod is raised in place and not at its creation. */
export const RAISE_CAUSE_CODES = ['CatchUp', 'Unschedulable', 'MightPreempt'] as const;
export type RaiseCause = (typeof RAISE_CAUSE_CODES)[number];
export const RAISE_CAUSES: Readonly<Record<RaiseCause, string>> = {
  CatchUp: 'it was created while no replica could be reached, or a moment before its boost',
  Unschedulable: 'no node had room for the pod with its boost',
  MightPreempt: 'its priority would have let a boosted request push other pods off their node',
};

/** Why a pod that is there is not raised in place, or not any more. */
export const RAISE_SKIPS = {
  HasRecord: 'the pod carries a record already, or one that cannot be read',
  HadItsBoost: 'the pod has had its boost',
  SkippedBefore: 'a boost that selects the pod has left it as it is',
  Ready: 'the pod has started',
  PodFinished: 'the pod has finished, or is about to go',
  TooOld: 'the pod is too old to be starting',
  OlderThanBoost: 'the boost was made long after the pod',
  NamespaceExcluded: 'pods of the namespace are not caught up',
  BoostOver: 'the boost would end at once',
} as const;
export type RaiseSkipCode = keyof typeof RAISE_SKIPS;

/** Why one container is left as it was. */
export const CONTAINER_SKIPS = {
  NoPolicy: 'no container policy of the boost matches its name',
  NoCpu: 'it has neither a CPU request nor a CPU limit',
  UnreadableQuantity: 'its CPU request or limit is no quantity',
  RestartsOnResize: 'its resizePolicy restarts it when CPU changes, so lowering would restart it',
  NothingToRaise: 'it has as much CPU as the policy gives, or more',
  RequestAboveLimit: 'its CPU request would be above its limit',
  QuotaPresent: 'a ResourceQuota of the namespace counts its CPU',
  LimitRangeExceeded: 'a LimitRange of the namespace does not allow as much CPU',
  WouldChangeQosClass: "the pod's QoS class would change, and the boost could not be taken back",
} as const;
export type ContainerSkipCode = keyof typeof CONTAINER_SKIPS;

/** Why a boost ends. */
export const END_REASONS = {
  ConditionMet: 'the pod condition of the boost is met',
  DurationElapsed: 'the fixed duration of the boost is over',
  MaximumElapsed: 'the longest time that any boost may last is over',
  Unschedulable: 'no node has room for the pod with its boost',
  NoRoomOnNode: 'the node has no room for the raise',
  NotRaised: 'boosts that were still to come have been switched off',
  BoostDeleted: 'the boost was deleted',
  RevertAll: 'revert-all has ended every boost',
  LabelRemoved: "the boost's label was taken off the pod",
  PodFinished: 'the pod has finished',
  AlreadyOriginal: 'nothing of the boost is left on the pod',
} as const;
export type EndReason = keyof typeof END_REASONS;

/** Whether a boost could be taken back, and what to do where it could not. */
export const REVERTIBLE_REASONS = {
  CanRevert: 'pods/resize is served, and the controller may patch it',
  ResizeNotServed:
    'Boosts nothing: the API server does not serve pods/resize; use Kubernetes 1.33 or newer',
  ResizeForbidden:
    'Boosts nothing: the controller may not patch pods/resize in this namespace; grant its service account the verb patch on pods/resize',
  PodPatchForbidden:
    'Boosts nothing: the controller may not patch pods in this namespace; grant its service account the verb patch on pods',
} as const;
export type RevertibleReason = keyof typeof REVERTIBLE_REASONS;

/** Why a revert does not get on by itself. */
export const STUCK_REASONS = {
  RecordUnreadable:
    'the record on the pod cannot be read, so the original CPU is not known; delete the pod to have it made anew',
  LimitRangeWouldChangePod:
    'a LimitRange made after the pod would add its defaults, which nobody can take off again',
  NotConfirmed: 'the kubelet does not confirm the resize; its node may be lost',
  Infeasible: 'the kubelet refuses the resize and will not try it again',
} as const;
export type StuckReason = keyof typeof STUCK_REASONS;
