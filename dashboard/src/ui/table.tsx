// A table that draws only the rows one can see.
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, type ReactNode } from 'react'
import { useWide } from './wide'

export interface Column<Row> {
  name: string
  /** The width of the column, as CSS grids have it. */
  width: string
  cell: (row: Row) => ReactNode
  /** Left out where there is little room. */
  wideOnly?: boolean
  right?: boolean
}

const ROW_PX = 38

export function Table<Row>({ label, columns: all, rows, keyOf, open, more, foot, follow = false, isChosen }: {
  label: string
  columns: Column<Row>[]
  rows: Row[]
  keyOf: (row: Row) => string
  open?: (row: Row) => void
  /** Called when the end comes near. */
  more?: (() => void) | undefined
  foot?: ReactNode
  /** Stays at the end while rows come. */
  follow?: boolean
  isChosen?: (row: Row) => boolean
}) {
  const isWide = useWide()
  const columns = isWide ? all : all.filter((column) => !column.wideOnly)
  const frame = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
    getItemKey: (index) => (rows[index] ? keyOf(rows[index]) : index),
  })
  const items = virtual.getVirtualItems()
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (more && last >= rows.length - 30) more()
  }, [more, last, rows.length])
  useEffect(() => {
    if (follow && rows.length > 0) virtual.scrollToIndex(rows.length - 1)
  }, [follow, rows.length, virtual])
  const grid = { gridTemplateColumns: columns.map((column) => column.width).join(' ') }
  const cellClass = (column: Column<Row>) =>
    `min-w-0 truncate px-2 ${column.right ? 'text-right' : ''}`
  return (
    <div ref={frame} role="table" aria-label={label} aria-rowcount={rows.length} tabIndex={0} className="min-h-0 flex-1 overflow-auto">
      <div role="rowgroup" className="sticky top-0 z-10 border-b border-line bg-panel">
        <div role="row" style={grid} className="grid items-center px-1.5 py-1.5 text-xs text-soft">
          {columns.map((column) => (
            <div key={column.name} role="columnheader" className={cellClass(column)}>{column.name}</div>
          ))}
        </div>
      </div>
      <div role="rowgroup" className="relative" style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const row = rows[item.index]
          if (row === undefined) return null
          return (
            <div
              key={item.key}
              role="row"
              aria-rowindex={item.index + 1}
              aria-selected={isChosen?.(row)}
              onClick={open && (() => open(row))}
              tabIndex={open ? 0 : undefined}
              onKeyDown={
                open &&
                ((event) => {
                  if (event.key !== 'Enter' || event.target !== event.currentTarget) return
                  // The key is not for what takes the focus now, such as the button that closes again.
                  event.preventDefault()
                  open(row)
                })
              }
              style={{ ...grid, height: ROW_PX, transform: `translateY(${item.start}px)` }}
              className={`absolute top-0 left-0 grid w-full items-center border-b border-line/60 px-1.5 ${open ? 'cursor-pointer hover:bg-raised' : ''} ${isChosen?.(row) ? 'bg-accent-wash' : ''}`}
            >
              {columns.map((column) => (
                <div key={column.name} role="cell" className={cellClass(column)}>{column.cell(row)}</div>
              ))}
            </div>
          )
        })}
      </div>
      {foot}
    </div>
  )
}
