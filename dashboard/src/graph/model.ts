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

export function graphOf(definition: Definition): { nodes: Node[]; edges: Edge[] } {
  const known = new Set(definition.steps.map((step) => step.id))
  const edges: Edge[] = []
  for (const step of definition.steps) {
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
  return { nodes: definition.steps.map((step) => ({ id: step.id, name: step.id, kind: kindOf(step) })), edges }
}

function branches(step: DefinitionStep): [string, string][] {
  const choice = step['switch'] as { cases?: { value?: unknown; steps?: string[] }[]; default?: string[] } | undefined
  if (choice === undefined || typeof choice !== 'object') return []
  const cases = (choice.cases ?? []).flatMap((one) => (one.steps ?? []).map((to): [string, string] => [String(one.value), to]))
  return [...cases, ...(choice.default ?? []).map((to): [string, string] => ['else', to])]
}
