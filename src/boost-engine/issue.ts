/** What is wrong with an object, field by field. */

export interface Issue {
  /** Dotted path from the object's root, such as `spec.durationPolicy.fixedDuration.value`. */
  readonly path: string;
  /** What is allowed there; reads on after the path. */
  readonly message: string;
}

export class IssueList {
  readonly #issues: Issue[] = [];

  add(path: string, message: string): void {
    this.#issues.push({ path, message });
  }

  get all(): readonly Issue[] {
    return this.#issues;
  }
}
