// Short words about what just happened.
import { X } from 'lucide-react'
import { useEffect, useRef } from 'react'
import { create } from 'zustand'
import { Failure } from '../api/client'

interface Note {
  id: number
  /** A note takes the place of an earlier one with the same key. */
  key?: string | undefined
  text: string
  hint?: string | undefined
  isBad: boolean
}

const SHOWN_MS = 6_000
const useNotes = create<{ notes: Note[] }>(() => ({ notes: [] }))
let lastId = 0

const drop = (id: number) => useNotes.setState(({ notes }) => ({ notes: notes.filter((note) => note.id !== id) }))

function add(note: Omit<Note, 'id'>): void {
  const id = ++lastId
  const isOther = (one: Note) => note.key === undefined || one.key !== note.key
  useNotes.setState(({ notes }) => ({ notes: [...notes.filter(isOther).slice(-3), { ...note, id }] }))
  setTimeout(() => drop(id), SHOWN_MS)
}

export const say = (text: string, more: { key?: string; hint?: string } = {}): void => add({ text, ...more, isBad: false })

export function complain(error: unknown): void {
  const text = error instanceof Error ? error.message : String(error)
  add({ text, hint: error instanceof Failure ? error.hint : undefined, isBad: true })
}

export function Toasts() {
  const notes = useNotes((all) => all.notes)
  const frame = useRef<HTMLDivElement>(null)
  // A dialog may have opened since: what is shown last lies on top.
  useEffect(() => {
    frame.current?.hidePopover()
    frame.current?.showPopover()
  }, [notes])
  return (
    <div ref={frame} popover="manual" role="status" aria-live="polite" className="pointer-events-none fixed top-auto left-auto m-0 overflow-visible border-0 bg-transparent p-0 text-ink right-3 bottom-16 z-50 flex w-[min(24rem,calc(100vw-1.5rem))] flex-col gap-2 md:bottom-3">
      {notes.map((note) => (
        <div key={note.id} className={`pointer-events-auto flex items-start gap-2 rounded-lg border border-line bg-panel px-3.5 py-2.5 shadow-lg ${note.isBad ? 'text-bad' : ''}`}>
          <div className="min-w-0 flex-1">
            <p className="break-words">{note.text}</p>
            {note.hint && <p className="text-xs text-soft">{note.hint}</p>}
          </div>
          <button type="button" aria-label="Dismiss" onClick={() => drop(note.id)} className="rounded p-0.5 text-soft hover:text-ink">
            <X size={14} aria-hidden />
          </button>
        </div>
      ))}
    </div>
  )
}
