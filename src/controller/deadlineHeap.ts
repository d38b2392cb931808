/** Keys in the order of their deadlines; a deadline can be moved and a key taken out. */
export class DeadlineHeap {
  readonly #keys: string[] = [];
  readonly #deadlines = new Map<string, number>();
  readonly #positions = new Map<string, number>();

  get size(): number {
    return this.#keys.length;
  }

  deadlineOf(key: string): number | undefined {
    return this.#deadlines.get(key);
  }

  first(): { readonly key: string; readonly deadline: number } | undefined {
    const key = this.#keys[0];
    return key === undefined ? undefined : { key, deadline: this.#deadline(key) };
  }

  set(key: string, deadline: number): void {
    this.#deadlines.set(key, deadline);
    const position = this.#positions.get(key) ?? this.#keys.length;
    this.#place(key, position);
    this.#rise(key);
    this.#sink(key);
  }

  delete(key: string): boolean {
    const position = this.#positions.get(key);
    if (position === undefined) {
      return false;
    }
    this.#deadlines.delete(key);
    this.#positions.delete(key);
    const last = this.#keys.pop();
    if (last !== undefined && last !== key) {
      this.#place(last, position);
      this.#rise(last);
      this.#sink(last);
    }
    return true;
  }

  #rise(key: string): void {
    let position = this.#positions.get(key) ?? 0;
    while (position > 0) {
      const parent = (position - 1) >> 1;
      const above = this.#keys[parent];
      if (above === undefined || this.#deadline(above) <= this.#deadline(key)) {
        return;
      }
      this.#place(above, position);
      this.#place(key, parent);
      position = parent;
    }
  }

  #sink(key: string): void {
    let position = this.#positions.get(key) ?? 0;
    for (;;) {
      const child = this.#earlierChild(position);
      if (child === undefined || this.#deadline(key) <= this.#deadline(child.key)) {
        return;
      }
      this.#place(child.key, position);
      this.#place(key, child.position);
      position = child.position;
    }
  }

  #earlierChild(parent: number): { readonly key: string; readonly position: number } | undefined {
    const position = 2 * parent + 1;
    const left = this.#keys[position];
    const right = this.#keys[position + 1];
    if (left === undefined) {
      return undefined;
    }
    return right !== undefined && this.#deadline(right) < this.#deadline(left)
      ? { key: right, position: position + 1 }
      : { key: left, position };
  }

  #place(key: string, position: number): void {
    this.#keys[position] = key;
    this.#positions.set(key, position);
  }

  #deadline(key: string): number {
    return this.#deadlines.get(key) ?? Infinity;
  }
}
