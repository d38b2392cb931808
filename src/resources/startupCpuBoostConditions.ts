/** The condition types that the controller writes into a boost's status. */

export const conditionTypes = [
  {
    type: 'Active',
    meaning:
      'True, reason Ready: new pods are boosted. False, reason Invalid: the boost is ignored, because an older definition let in what is refused today; the message says which fields. False, reason Stopped: revert-all has stopped the webhook.',
  },
  {
    type: 'Revertible',
    meaning:
      'True: the controller could take the boost back. False: it could not, so no new pod is boosted; the reason is ResizeNotServed, ResizeForbidden or PodPatchForbidden, and the message says what to do. Looked at once a minute, and at once after a refused resize.',
  },
  {
    type: 'ConflictingWebhook',
    meaning:
      'True: another MutatingWebhookConfiguration boosts pods under the same webhook name, such as that of google/kube-startup-cpu-boost; the message names it. Pods may be boosted twice, the second time on top of the first.',
  },
] as const satisfies readonly { readonly type: string; readonly meaning: string }[];
