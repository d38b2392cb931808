/** The last stage of the Dockerfile, as far as an image without Docker has to know it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure, root } from './processes.mjs';

/**
 * @typedef {object} RuntimeStage
 * @property {string} base the base image
 * @property {readonly {from: string, to: string}[]} copies out of the build stage
 * @property {Readonly<Record<string, string>>} labels
 * @property {string} user
 * @property {readonly string[]} entrypoint
 * @property {readonly string[]} command
 */

/**
 * Reads the instructions that are there today. Any other one is an error: what an image without Docker
 * would leave out must not get into the Dockerfile unnoticed.
 * @returns {RuntimeStage}
 */
export function runtimeStage(text = readFileSync(join(root, 'Dockerfile'), 'utf8')) {
  const instructions = instructionsOf(text);
  const begin = instructions.findLastIndex(({ name }) => name === 'FROM');
  const args = instructions.filter(({ name }) => name === 'ARG').map(({ value }) => value);
  const defaults = Object.fromEntries(args.map((arg) => split(arg, '=')));
  const stage = { copies: [], labels: {}, user: '', entrypoint: [], command: [] };
  for (const { name, value } of instructions.slice(begin)) {
    const read = readers[name];
    if (read === undefined) throw new Failure(`Dockerfile: scripts/image.mjs cannot do ${name}`);
    read(stage, withArguments(value, defaults));
  }
  return stage;
}

const readers = {
  ARG: () => undefined,
  EXPOSE: () => undefined,
  FROM: (stage, value) => (stage.base = value),
  USER: (stage, value) => (stage.user = value),
  ENTRYPOINT: (stage, value) => (stage.entrypoint = JSON.parse(value)),
  CMD: (stage, value) => (stage.command = JSON.parse(value)),
  LABEL(stage, value) {
    for (const [, key, text] of value.matchAll(/(\S+?)="([^"]*)"/g)) stage.labels[key] = text;
  },
  COPY(stage, value) {
    const match = /^--from=build (\S+) (\S+)$/.exec(value);
    if (match === null) throw new Failure(`Dockerfile: scripts/image.mjs cannot do COPY ${value}`);
    stage.copies.push({ from: match[1], to: match[2] });
  },
};

function instructionsOf(text) {
  const lines = text.split('\n').filter((line) => !/^\s*(#|$)/.test(line));
  return lines
    .join('\n')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .map((line) => split(line, ' '))
    .map(([name, value]) => ({ name, value: value.trim() }));
}

const split = (text, at) => {
  const index = text.indexOf(at);
  return index === -1 ? [text, ''] : [text.slice(0, index), text.slice(index + at.length)];
};

const withArguments = (value, defaults) =>
  value.replace(/\$\{(\w+)\}/g, (_, name) => defaults[name] ?? '');
