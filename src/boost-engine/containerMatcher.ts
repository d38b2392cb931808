/** Which containers a container policy is for. */
import { RE2JS } from 're2js';
import type { IssueList } from './issue';
import { fieldsOf, textOf } from './json';

export type ContainerMatcher =
  | { readonly kind: 'ExactName'; readonly name: string }
  | { readonly kind: 'RegexName'; readonly pattern: string; readonly regex: RE2JS };

/**
 * Bounds on a pattern. RE2 matches in time linear to program times text, and a container name has at
 * most 63 characters. A few characters can stand for a large program (`(.?){1000}`, again and again),
 * which took half a second for one name; within this bound it is a few milliseconds at most.
 */
const MAX_PATTERN_LENGTH = 256;
const MAX_PROGRAM_SIZE = 2_000;

export function matchesContainer(matcher: ContainerMatcher, name: string): boolean {
  switch (matcher.kind) {
    case 'ExactName':
      return matcher.name === name;
    case 'RegexName':
      return matcher.regex.matcher(name).find();
  }
}

/** Compiles `containerName` (deprecated) or `matchContainers` of one container policy. */
export function compileContainerMatcher(
  policy: unknown,
  path: string,
  issues: IssueList,
): ContainerMatcher | undefined {
  const fields = fieldsOf(policy);
  const containerName = fields.get('containerName');
  const matchContainers = fields.get('matchContainers');
  const hasName = isSet(containerName);
  if (hasName === isSet(matchContainers)) {
    issues.add(path, 'needs exactly one of matchContainers and containerName');
    return undefined;
  }
  return hasName
    ? compileExactName(containerName, `${path}.containerName`, issues)
    : compileMatchContainers(matchContainers, `${path}.matchContainers`, issues);
}

/** An empty containerName is how a Go client writes an absent one. */
function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

function compileMatchContainers(value: unknown, path: string, issues: IssueList) {
  const fields = fieldsOf(value);
  const type = fields.get('type');
  switch (type) {
    case 'ExactName':
      return compileExactName(fields.get('value'), `${path}.value`, issues);
    case 'RegexName':
      return compileRegexName(fields.get('value'), `${path}.value`, issues);
    default:
      issues.add(`${path}.type`, 'must be ExactName or RegexName');
      return undefined;
  }
}

function compileExactName(
  value: unknown,
  path: string,
  issues: IssueList,
): ContainerMatcher | undefined {
  const name = textOf(value);
  if (name === undefined || name === '') {
    issues.add(path, 'must be the name of a container');
    return undefined;
  }
  return { kind: 'ExactName', name };
}

function compileRegexName(
  value: unknown,
  path: string,
  issues: IssueList,
): ContainerMatcher | undefined {
  const pattern = textOf(value);
  if (pattern === undefined || pattern === '' || pattern.length > MAX_PATTERN_LENGTH) {
    issues.add(path, `must be a regular expression of 1 to ${MAX_PATTERN_LENGTH} characters`);
    return undefined;
  }
  try {
    const regex = RE2JS.compile(pattern);
    if (regex.programSize() <= MAX_PROGRAM_SIZE) return { kind: 'RegexName', pattern, regex };
    issues.add(path, 'must be a simpler regular expression: its repetitions multiply to too much');
    return undefined;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    issues.add(path, `must be a regular expression in RE2 syntax: ${why}`);
    return undefined;
  }
}
