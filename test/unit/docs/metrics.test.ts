/** docs/metrics.md has the metrics of the program, with their types and labels. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { Counter, Gauge, Histogram } from 'prom-client';
import { z } from 'zod';
import { createMetrics } from '../../../src/observability';

const root = join(__dirname, '..', '..', '..');

/** prom-client keeps these on each metric, and has no types for them. */
const metricSchema = z.looseObject({ name: z.string(), labelNames: z.array(z.string()) });

function typeOf(metric: unknown): string | undefined {
  if (metric instanceof Counter) return 'counter';
  if (metric instanceof Gauge) return 'gauge';
  return metric instanceof Histogram ? 'histogram' : undefined;
}

describe('docs/metrics.md', () => {
  it('has every metric with its type and labels, once, and no other', () => {
    const documented = readFileSync(join(root, 'docs/metrics.md'), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .map((line) =>
        line
          .split('|')
          .slice(1, 4)
          .map((cell) => cell.trim()),
      );
    const registered = Object.values(createMetrics()).flatMap((metric: unknown) => {
      const type = typeOf(metric);
      if (type === undefined) return [];
      const { name, labelNames } = metricSchema.parse(metric);
      return [[`\`${name}\``, type, labelNames.join(', ')]];
    });
    expect(registered.length).toBeGreaterThan(10);
    expect(documented.sort()).toEqual(registered.sort());
  });
});
