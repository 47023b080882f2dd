// The tree of documents; branches are asked for when they are opened.
import { useQuery } from '@tanstack/react-query'
import { ChevronRight, FileText } from 'lucide-react'
import { useState } from 'react'
import { children, type DocumentSummary } from '../../api/knowledge'
import { Link } from '../../app/router'

export function Tree({ chosen }: { chosen: string | undefined }) {
  const found = useQuery({ queryKey: ['children', 'root'], queryFn: () => children('root'), refetchInterval: 20_000 })
  const list = found.data?.children ?? []
  return (
    <ul aria-label="Documents" className="py-1">
      {list.map((one) => <Branch key={one.id} document={one} depth={0} chosen={chosen} />)}
    </ul>
  )
}

function Branch({ document, depth, chosen }: { document: DocumentSummary; depth: number; chosen: string | undefined }) {
  const [isOpen, setOpen] = useState(depth === 0)
  const found = useQuery({ queryKey: ['children', document.id], queryFn: () => children(document.id), enabled: isOpen })
  const list = found.data?.children ?? []
  const isLeaf = found.data !== undefined && list.length === 0
  const name = document.title ?? document.id
  return (
    <li>
      <div style={{ paddingLeft: 6 + depth * 14 }} className={`flex items-center gap-1 pr-2 ${document.id === chosen ? 'bg-accent-wash' : 'hover:bg-raised'}`}>
        <button type="button" aria-label={`${isOpen ? 'Close' : 'Open'} ${name}`} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} className={`rounded p-0.5 text-faint ${isLeaf ? 'invisible' : ''}`}>
          <ChevronRight size={14} aria-hidden className={`transition-transform ${isOpen ? 'rotate-90' : ''}`} />
        </button>
        <Link to={`/knowledge/${encodeURIComponent(document.id)}`} aria-current={document.id === chosen ? 'true' : undefined} className="flex min-w-0 flex-1 items-center gap-1.5 py-1">
          <FileText size={14} aria-hidden className="shrink-0 text-faint" />
          <span className="truncate">{name}</span>
        </Link>
      </div>
      {isOpen && list.length > 0 && (
        <ul>{list.map((one) => <Branch key={one.id} document={one} depth={depth + 1} chosen={chosen} />)}</ul>
      )}
    </li>
  )
}
