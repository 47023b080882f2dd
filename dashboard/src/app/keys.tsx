// The keyboard: g and a letter goes to a page, / to the search, ? shows what there is.
import { useEffect, useState } from 'react'
import { Dialog } from '../ui/dialog'
import { PAGES } from './pages'
import { go } from './router'

/** Fields that take no letters leave them to the pages. */
const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLInputElement
    ? !['radio', 'checkbox', 'range'].includes(target.type)
    : target instanceof HTMLElement && (target.isContentEditable || ['TEXTAREA', 'SELECT'].includes(target.tagName))

export function Keys() {
  const [isShown, setShown] = useState(false)
  useEffect(() => {
    let wentAt = 0
    const press = (event: KeyboardEvent) => {
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return
      if (event.key === '?') setShown(true)
      else if (event.key === '/') {
        const search = document.querySelector<HTMLInputElement>('input[type="search"]')
        if (!search) return
        event.preventDefault()
        search.focus()
      } else if (event.key === 'g') wentAt = event.timeStamp
      else if (event.timeStamp - wentAt < 1_000) {
        const page = PAGES.find((one) => one.key === event.key)
        if (page) go(page.path)
        wentAt = 0
      }
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
  if (!isShown) return null
  return (
    <Dialog title="Keyboard" close={() => setShown(false)}>
      <dl className="grid grid-cols-[max-content_1fr] gap-x-5 gap-y-2">
        {PAGES.map((page) => (
          <Key key={page.key} keys={['g', page.key]} what={page.name} />
        ))}
        <Key keys={['/']} what="Search" />
        <Key keys={['?']} what="This list" />
      </dl>
    </Dialog>
  )
}

function Key({ keys, what }: { keys: string[]; what: string }) {
  return (
    <>
      <dt className="flex gap-1">
        {keys.map((key) => (
          <kbd key={key} className="min-w-6 rounded border border-line bg-raised px-1.5 text-center font-mono text-xs leading-5">{key}</kbd>
        ))}
      </dt>
      <dd>{what}</dd>
    </>
  )
}
