import { expect, test } from 'vitest'
import { listOf } from './list-of'

test('names are separated by commas, without blanks and repeats', () => {
  expect(listOf(' shop, , other\nshop,')).toEqual(['shop', 'other'])
  expect(listOf('')).toEqual([])
})
