// A workflow drawn: steps as boxes in the colours of their states.
import '@xyflow/react/dist/base.css'
import dagre from '@dagrejs/dagre'
import { Background, Controls, Handle, MarkerType, Position, ReactFlow, type NodeProps, type Node as FlowNode } from '@xyflow/react'
import { useMemo } from 'react'
import type { Definition } from '../api/workflows'
import { lookOf, TEXT } from '../ui/state'
import { useWide } from '../ui/wide'
import { graphOf } from './model'

const WIDTH = 190
const HEIGHT = 54

interface Props {
  definition: Definition
  stateOf?: (step: string) => string | undefined
  noteOf?: (step: string) => string | undefined
  chosen?: string | undefined
  choose?: (step: string) => void
}

type Box = FlowNode<{ name: string; kind: string; state: string | undefined; note: string | undefined; isChosen: boolean; isDown: boolean }>

export default function Graph({ definition, stateOf, noteOf, chosen, choose }: Props) {
  const isWide = useWide()
  const laid = useMemo(() => fit(definition, isWide), [definition, isWide])
  const isDown = laid.rankdir === 'TB'
  const nodes: Box[] = laid.nodes.map((node) => ({
    id: node.id,
    type: 'step',
    position: { x: node.x, y: node.y },
    width: WIDTH,
    height: HEIGHT,
    draggable: false,
    connectable: false,
    data: { name: node.name, kind: node.kind, state: stateOf?.(node.id), note: noteOf?.(node.id), isChosen: node.id === chosen, isDown },
    ariaLabel: `Step ${node.id}, ${stateOf?.(node.id) ?? node.kind}`,
  }))
  const edges = laid.edges.map((edge) => ({
    id: `${edge.from}>${edge.to}>${edge.label ?? ''}`,
    source: edge.from,
    target: edge.to,
    ...(edge.label === undefined ? {} : { label: edge.label }),
    animated: stateOf?.(edge.to) === 'running',
    style: { stroke: 'var(--faint)', strokeWidth: 1.4, ...(edge.isDashed ? { strokeDasharray: '5 4' } : {}) },
    labelStyle: { fill: 'var(--soft)', fontSize: 11 },
    labelBgStyle: { fill: 'var(--panel)' },
    markerEnd: { type: MarkerType.ArrowClosed, color: 'var(--faint)', width: 14, height: 14 },
  }))
  return (
    <ReactFlow
      nodes={nodes}
      edges={edges}
      nodeTypes={TYPES}
      fitView
      fitViewOptions={{ padding: 0.15, maxZoom: 1.15 }}
      minZoom={0.2}
      maxZoom={1.6}
      nodesFocusable
      edgesFocusable={false}
      onNodeClick={(_, node) => choose?.(node.id)}
      onSelectionChange={() => undefined}
      zoomOnScroll={false}
      preventScrolling={false}
    >
      <Background gap={18} size={1} color="var(--line)" />
      <Controls showInteractive={false} />
    </ReactFlow>
  )
}

const TYPES = { step: StepBox }

function StepBox({ data }: NodeProps<Box>) {
  const look = data.state === undefined ? undefined : lookOf(data.state)
  const Icon = look?.icon
  return (
    <div
      data-state={data.state}
      className={`flex h-full w-full items-center gap-2 overflow-hidden rounded-lg border bg-raised px-2.5 text-left shadow-sm ${data.isChosen ? 'border-accent ring-2 ring-accent/30' : 'border-faint/50'}`}
    >
      <Handle type="target" position={data.isDown ? Position.Top : Position.Left} />
      {look && Icon && <Icon size={18} aria-hidden className={`shrink-0 ${TEXT[look.hue]} ${look.moves ? 'pulse' : ''}`} />}
      <span className="min-w-0">
        <span className="block truncate text-[13px] leading-5 font-medium">{data.name}</span>
        <span className="figures block truncate text-[11px] leading-4 text-soft">{data.note ?? data.kind}</span>
      </span>
      <Handle type="source" position={data.isDown ? Position.Bottom : Position.Right} />
    </div>
  )
}

/** The direction in which more of it can be read. */
function fit(definition: Definition, isWide: boolean) {
  const [room, high] = isWide ? [900, 420] : [340, 420]
  const readable = (laid: ReturnType<typeof lay>) => Math.min(1.15, room / laid.width, high / laid.height)
  const [across, down] = [lay(definition, 'LR'), lay(definition, 'TB')]
  return readable(down) > readable(across) * 1.1 ? down : across
}

function lay(definition: Definition, rankdir: 'LR' | 'TB') {
  const { nodes, edges } = graphOf(definition)
  const graph = new dagre.graphlib.Graph()
  graph.setGraph({ rankdir, nodesep: 22, ranksep: rankdir === 'LR' ? 46 : 34 })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const node of nodes) graph.setNode(node.id, { width: WIDTH, height: HEIGHT })
  for (const edge of edges) graph.setEdge(edge.from, edge.to)
  dagre.layout(graph)
  const size = graph.graph() as { width?: number; height?: number }
  return {
    rankdir,
    width: Math.max(1, size.width ?? 1),
    height: Math.max(1, size.height ?? 1),
    edges,
    nodes: nodes.map((node) => {
      const place = graph.node(node.id) as { x: number; y: number }
      return { ...node, x: place.x - WIDTH / 2, y: place.y - HEIGHT / 2 }
    }),
  }
}
