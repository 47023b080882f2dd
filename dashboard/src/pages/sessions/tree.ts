// The messages of a session as a tree, laid out line by line: a branch is indented only where there is more than one.
import type { TreeNode } from '../../api/session'

export interface Row {
  node: TreeNode
  depth: number
  /** On the way from the root to where the session is. */
  isCurrent: boolean
}

export function rowsOf(nodes: TreeNode[], leaf: string | null): Row[] {
  const children = new Map<string | null, TreeNode[]>()
  const known = new Map(nodes.map((node) => [node.entryId, node]))
  for (const node of nodes) {
    const parent = node.parentId !== null && known.has(node.parentId) ? node.parentId : null
    children.set(parent, [...(children.get(parent) ?? []), node])
  }
  const current = new Set<string>()
  for (let at = leaf === null ? undefined : known.get(leaf); at !== undefined; at = at.parentId === null ? undefined : known.get(at.parentId)) {
    if (current.has(at.entryId)) break
    current.add(at.entryId)
  }
  const rows: Row[] = []
  const waiting = (children.get(null) ?? []).toReversed().map((node): [TreeNode, number] => [node, 0])
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [node, depth] = next
    rows.push({ node, depth, isCurrent: current.has(node.entryId) })
    const below = children.get(node.entryId) ?? []
    const deeper = below.length > 1 ? depth + 1 : depth
    for (const child of below.toReversed()) waiting.push([child, deeper])
  }
  return rows
}
