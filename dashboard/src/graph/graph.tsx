// A workflow drawn: steps as boxes in the colours of their states.
import '@xyflow/react/dist/base.css'
import dagre from '@dagrejs/dagre'
import { Background, BaseEdge, Controls, Handle, MarkerType, Position, ReactFlow, type Edge as FlowEdge, type EdgeProps, type NodeProps, type Node as FlowNode, type ReactFlowInstance } from '@xyflow/react'
import { useEffect, useMemo, useRef, useState } from 'react'
import type { Definition } from '../api/workflows'
import { lookOf, TEXT } from '../ui/state'
import { useWide } from '../ui/wide'
import { graphOf } from './model'
import { pathOf, type Point } from './route'

const HEIGHT = 54
/** Narrower on a phone, where more of them have to stand side by side. */
const widthOf = (isWide: boolean): number => (isWide ? 190 : 132)

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
    width: widthOf(isWide),
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
    // One that passes by other steps goes around them.
    ...(edge.bends.length > 1 ? { type: 'route', data: { bends: edge.bends } } : {}),
    ...(edge.label === undefined ? {} : { label: edge.label }),
    animated: stateOf?.(edge.to) === 'running',
    style: { stroke: 'var(--faint)', strokeWidth: 1.4, ...(edge.isDashed ? { strokeDasharray: '5 4' } : {}) },
    labelStyle: { fill: 'var(--soft)', fontSize: 11 },
    labelBgStyle: { fill: 'var(--panel)' },
    markerEnd: { type: MarkerType.ArrowClosed, color: 'var(--faint)', width: 14, height: 14 },
  }))
  const [flow, setFlow] = useState<ReactFlowInstance<Box>>()
  const frame = useRef<HTMLDivElement>(null)
  // What is beside it comes and goes; all of it stays in sight.
  useEffect(() => {
    if (!flow || !frame.current) return
    const watch = new ResizeObserver(() => void flow.fitView(FIT))
    watch.observe(frame.current)
    return () => watch.disconnect()
  }, [flow])
  return (
    <ReactFlow
      ref={frame}
      onInit={setFlow}
      nodes={nodes}
      edges={edges}
      nodeTypes={TYPES}
      edgeTypes={EDGES}
      fitView
      fitViewOptions={FIT}
      minZoom={0.2}
      maxZoom={1.6}
      nodesFocusable
      edgesFocusable={false}
      onNodeClick={(_, node) => choose?.(node.id)}
      onKeyDown={(event) => {
        const id = (event.target as HTMLElement).closest<HTMLElement>('.react-flow__node')?.dataset['id']
        if (id === undefined || (event.key !== 'Enter' && event.key !== ' ')) return
        event.preventDefault()
        choose?.(id)
      }}
      onSelectionChange={() => undefined}
      zoomOnScroll={false}
      preventScrolling={false}
    >
      <Background gap={18} size={1} color="var(--line)" />
      <Controls showInteractive={false} />
    </ReactFlow>
  )
}

/** The buttons at the side cover nothing. */
const FIT = { padding: { top: '20px', bottom: '28px', x: '52px' }, maxZoom: 1.15 } as const

const TYPES = { step: StepBox }
const EDGES = { route: Route }

function Route({ sourceX, sourceY, targetX, targetY, data, label, ...rest }: EdgeProps<FlowEdge<{ bends: Point[] }>>) {
  const bends = data?.bends ?? []
  const place = bends[Math.floor(bends.length / 2)]
  return (
    <BaseEdge
      path={pathOf([{ x: sourceX, y: sourceY }, ...bends, { x: targetX, y: targetY }])}
      label={label}
      {...(place ? { labelX: place.x, labelY: place.y } : {})}
      {...(rest.markerEnd === undefined ? {} : { markerEnd: rest.markerEnd })}
      {...(rest.style === undefined ? {} : { style: rest.style })}
      {...(rest.labelStyle === undefined ? {} : { labelStyle: rest.labelStyle })}
      {...(rest.labelBgStyle === undefined ? {} : { labelBgStyle: rest.labelBgStyle })}
    />
  )
}

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
  const [room, high] = isWide ? [900, 600] : [290, 400]
  const readable = (laid: ReturnType<typeof lay>) => Math.min(1.15, room / laid.width, high / laid.height)
  const [across, down] = [lay(definition, 'LR', widthOf(isWide)), lay(definition, 'TB', widthOf(isWide))]
  return readable(down) > readable(across) * 1.1 ? down : across
}

function lay(definition: Definition, rankdir: 'LR' | 'TB', boxWidth: number) {
  const { nodes, edges } = graphOf(definition)
  const graph = new dagre.graphlib.Graph()
  graph.setGraph({ rankdir, nodesep: boxWidth / 8, ranksep: rankdir === 'LR' ? 46 : 34 })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const node of nodes) graph.setNode(node.id, { width: boxWidth, height: HEIGHT })
  for (const edge of edges) graph.setEdge(edge.from, edge.to)
  dagre.layout(graph)
  const size = graph.graph() as { width?: number; height?: number }
  return {
    rankdir,
    width: Math.max(1, size.width ?? 1),
    height: Math.max(1, size.height ?? 1),
    edges: edges.map((edge) => ({ ...edge, bends: bendsOf(graph.edge(edge.from, edge.to) as { points?: Point[] } | undefined) })),
    nodes: nodes.map((node) => {
      const place = graph.node(node.id) as { x: number; y: number }
      return { ...node, x: place.x - boxWidth / 2, y: place.y - HEIGHT / 2 }
    }),
  }
}

/** What lies between the borders of the two boxes. */
const bendsOf = (edge: { points?: Point[] } | undefined): Point[] => (edge?.points ?? []).slice(1, -1)
