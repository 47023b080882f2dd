// A question in front of the page. The browser keeps the focus in it and closes it on Escape.
import { X } from 'lucide-react'
import { useEffect, useRef, type ReactNode } from 'react'

export function Dialog({ title, close, children, wide = false }: { title: string; close: () => void; children: ReactNode; wide?: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const shown = dialog.current
    shown?.showModal()
    return () => shown?.close()
  }, [])
  return (
    <dialog
      ref={dialog}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault()
        close()
      }}
      onClick={(event) => {
        if (event.target === dialog.current) close()
      }}
      className={`m-auto max-h-[88dvh] w-[calc(100vw-2rem)] ${wide ? 'max-w-3xl' : 'max-w-lg'} overflow-hidden rounded-xl border border-line bg-panel p-0 text-ink shadow-2xl`}
    >
      <div className="flex max-h-[88dvh] flex-col">
        <header className="flex items-center justify-between border-b border-line px-4 py-2.5">
          <h2 className="text-[15px]">{title}</h2>
          <button type="button" aria-label="Close" onClick={close} className="rounded p-1 text-soft hover:bg-raised hover:text-ink">
            <X size={16} aria-hidden />
          </button>
        </header>
        <div className="min-h-0 overflow-y-auto p-4">{children}</div>
      </div>
    </dialog>
  )
}
