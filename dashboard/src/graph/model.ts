// What a workflow looks like as a graph: its steps, and what each waits for.
import type { Definition, DefinitionStep } from '../api/workflows'

export interface Node {
  id: string
  name: string
  kind: string
}

export interface Edge {
  from: string
  to: string
  label?: string
  isDashed?: true
}

const KINDS = ['approval', 'wait', 'waitFor', 'event', 'switch', 'workflow', 'parallel'] as const

export function kindOf(step: DefinitionStep): string {
  const agent = step.agentId ?? step.agent?.id
  const base = agent?.replace('@orchestr8/', '') ?? KINDS.find((kind) => step[kind] !== undefined) ?? step.type ?? 'step'
  if (step['forEach'] !== undefined) return `${base}, for each`
  if (step['while'] !== undefined) return `${base}, while`
  return base
}

/** Steps that lead to no other, and steps that wait for none: where one list of a definition ends and the next begins. */
const ends = (steps: DefinitionStep[], edges: Edge[]) => steps.filter((step) => !edges.some((edge) => edge.from === step.id))
const beginnings = (steps: DefinitionStep[], edges: Edge[]) => steps.filter((step) => !edges.some((edge) => edge.to === step.id))

export function graphOf(definition: Definition): { nodes: Node[]; edges: Edge[] } {
  const lists: [string, DefinitionStep[]][] = [
    ['on failure', definition.onFailure ?? []],
    ['finally', definition.finally ?? []],
  ]
  const { nodes, edges } = graphOfSteps(definition.steps)
  const last = ends(definition.steps, edges)
  for (const [label, steps] of lists) {
    const own = graphOfSteps(steps)
    nodes.push(...own.nodes.map((node) => ({ ...node, kind: `${node.kind}, ${label}` })))
    for (const to of beginnings(steps, own.edges)) {
      edges.push(...last.map((from): Edge => ({ from: from.id, to: to.id, label, isDashed: true })))
    }
    edges.push(...own.edges)
  }
  return { nodes, edges }
}

function graphOfSteps(steps: DefinitionStep[]): { nodes: Node[]; edges: Edge[] } {
  const known = new Set(steps.map((step) => step.id))
  const edges: Edge[] = []
  for (const step of steps) {
    for (const before of [...(step.dependencies ?? []), ...(step.dependsOn ?? [])]) {
      if (known.has(before)) edges.push({ from: before, to: step.id })
    }
    for (const [label, to] of branches(step)) {
      if (known.has(to) && !edges.some((edge) => edge.from === step.id && edge.to === to)) edges.push({ from: step.id, to, label })
    }
    if (step.fallbackStepId !== undefined && known.has(step.fallbackStepId)) {
      edges.push({ from: step.id, to: step.fallbackStepId, label: 'if it fails', isDashed: true })
    }
  }
  return { nodes: steps.map((step) => ({ id: step.id, name: step.id, kind: kindOf(step) })), edges }
}

function branches(step: DefinitionStep): [string, string][] {
  const choice = step['switch'] as { cases?: { value?: unknown; steps?: string[] }[]; default?: string[] } | undefined
  if (choice === undefined || typeof choice !== 'object') return []
  const cases = (choice.cases ?? []).flatMap((one) => (one.steps ?? []).map((to): [string, string] => [String(one.value), to]))
  return [...cases, ...(choice.default ?? []).map((to): [string, string] => ['else', to])]
}
