/**
 * A Node program that starts as real ones do: it loads a large package, the TypeScript compiler, and
 * has checked a program with it before it is ready, so that its first caller finds it warm.
 */
import { createServer } from 'node:http';
import ts from 'typescript';

const source = `
  interface Product { readonly id: number; readonly name: string; readonly prices: readonly number[] }
  type Priced<T> = { readonly [K in keyof T]: T[K] extends readonly number[] ? number : T[K] };
  export const cheapest = (products: readonly Product[]): readonly Priced<Product>[] =>
    products.map(({ prices, ...rest }) => ({ ...rest, prices: Math.min(...prices) }));
  export const isKnown = (name: string, products: Map<string, Product>): name is string => products.has(name);
`;

/** How many mistakes the compiler finds; each call is a compiler of its own, with cold caches. */
function check(text) {
  const options = { strict: true, lib: ['lib.esnext.full.d.ts'], noEmit: true };
  const host = ts.createCompilerHost(options);
  const readSource = host.getSourceFile.bind(host);
  host.getSourceFile = (name, ...rest) =>
    name === 'input.ts'
      ? ts.createSourceFile(name, text, ts.ScriptTarget.ESNext, true)
      : readSource(name, ...rest);
  host.fileExists = () => false;
  const program = ts.createProgram(['input.ts'], options, host);
  return ts.getPreEmitDiagnostics(program).length;
}

for (let round = 1; round <= 3; round++) console.log(`warm-up ${round}: ${check(source)}`);

createServer((request, response) => {
  response.end(request.url === '/ready' ? 'ready\n' : `${check(source)} mistakes\n`);
}).listen(8080, () => console.log('ready'));
process.once('SIGTERM', () => process.exit());
