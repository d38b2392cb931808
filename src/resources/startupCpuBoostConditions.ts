/** The condition types that the controller writes into a boost's status. */

export const conditionTypes = [
  {
    type: 'Active',
    meaning:
      'True, reason Ready: new pods are boosted. False, reason Invalid: the boost is ignored, because an older definition let in what is refused today; the message says which fields.',
  },
] as const satisfies readonly { readonly type: string; readonly meaning: string }[];
