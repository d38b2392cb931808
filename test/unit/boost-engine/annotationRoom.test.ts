/** Whether annotations fit on a pod, counted as the API server counts them. */
import { describe, expect, it } from '@jest/globals';
import { hasRoomFor } from '../../../src/boost-engine/annotationRoom';

const LIMIT = 255 * 1_024;

describe('hasRoomFor', () => {
  it.each<[string, ReadonlyMap<string, string> | undefined, string, boolean]>([
    ['no annotations', undefined, 'x', true],
    ['all the room', undefined, 'x'.repeat(LIMIT - 1), true],
    ['one byte too much', undefined, 'x'.repeat(LIMIT), false],
    ['others, with room left', new Map([['ab', 'cd']]), 'x'.repeat(LIMIT - 5), true],
    ['others, with none left', new Map([['ab', 'cd']]), 'x'.repeat(LIMIT - 4), false],
    ['an entry that is replaced', new Map([['k', 'x'.repeat(LIMIT)]]), 'x', true],
    ['two bytes a character', undefined, 'é'.repeat(LIMIT / 2), false],
    ['three bytes a character', undefined, '€'.repeat(LIMIT / 3), false],
    ['four bytes a character', undefined, '😀'.repeat(LIMIT / 4), false],
    ['four bytes a character, that fit', undefined, '😀'.repeat(LIMIT / 4 - 1), true],
  ])('%s', (_what, present, value, expected) => {
    expect(hasRoomFor(present, new Map([['k', value]]))).toBe(expected);
  });
});
