// The way of a long edge around the boxes between its ends.

export interface Point {
  x: number
  y: number
}

const middle = (one: Point, other: Point): Point => ({ x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 })
const at = (point: Point): string => `${round(point.x)},${round(point.y)}`
const round = (value: number): number => Math.round(value * 10) / 10

/** A soft line from the first point to the last that leans towards each one between. */
export function pathOf(points: Point[]): string {
  const [first, ...rest] = points
  const last = rest.pop()
  if (first === undefined || last === undefined) return ''
  const bends = rest.map((bend, index) => `Q${at(bend)} ${at(index === rest.length - 1 ? last : middle(bend, rest[index + 1] ?? last))}`)
  return `M${at(first)} ${bends.length === 0 ? `L${at(last)}` : bends.join(' ')}`
}
