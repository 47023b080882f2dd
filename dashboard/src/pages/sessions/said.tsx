// One message: words, thoughts, calls of tools and what they gave.
import { ChevronRight, CircleDot, User, Wrench } from 'lucide-react'
import { memo } from 'react'
import type { Content, Message } from '../../api/session'
import { Code } from '../../ui/code'
import { clockTime } from '../../ui/time'

/** What has been said is drawn once, however long the answer after it takes. */
export const Said = memo(function Said({ message, running, isPartial = false }: { message: Message; running: string[]; isPartial?: boolean }) {
  const parts: Content[] = typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : message.content
  if (message.role === 'toolResult') {
    const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
    return (
      <li className="pl-8">
        <details className="rounded-md border border-line">
          <summary className={`flex items-center gap-1.5 px-2.5 py-1.5 text-xs ${message.isError ? 'text-bad' : 'text-soft'}`}>
            <ChevronRight size={13} aria-hidden /> {message.toolName ?? 'tool'} {message.isError ? 'failed' : 'answered'}
            <span className="min-w-0 flex-1 truncate font-mono text-faint">{text}</span>
          </summary>
          <div className="p-2"><Code value={text} label="Result of the tool" /></div>
        </details>
      </li>
    )
  }
  const isUser = message.role === 'user'
  return (
    <li className="flex gap-3">
      <span aria-hidden className={`mt-0.5 flex size-5 shrink-0 items-center justify-center rounded-full ${isUser ? 'bg-idle-wash text-idle' : 'bg-accent-wash text-accent'}`}>
        {isUser ? <User size={12} /> : <CircleDot size={12} className={isPartial ? 'pulse' : ''} />}
      </span>
      <div className="min-w-0 flex-1">
        <p className="mb-0.5 flex items-center gap-2 text-xs text-soft">
          <span className="font-medium text-ink">{isUser ? 'You' : 'Agent'}</span>
          {message.timestamp !== undefined && <span className="figures">{clockTime(message.timestamp)}</span>}
          {!isUser && message.usage && message.usage.output > 0 && <span className="figures">{message.usage.output} tokens</span>}
        </p>
        {parts.map((part, index) => <Part key={index} part={part} running={running} />)}
        {isPartial && <span aria-hidden className="pulse inline-block h-4 w-1.5 bg-accent align-text-bottom" />}
        {message.errorMessage && <p className="text-bad">{message.errorMessage}</p>}
      </div>
    </li>
  )
})

function Part({ part, running }: { part: Content; running: string[] }) {
  switch (part.type) {
    case 'text':
      return <p className="leading-6 break-words whitespace-pre-wrap">{part.text}</p>
    case 'thinking':
      return (
        <details className="my-1 text-soft">
          <summary className="text-xs">Thoughts</summary>
          <p className="mt-1 border-l-2 border-line pl-3 whitespace-pre-wrap">{part.thinking ?? part.text}</p>
        </details>
      )
    case 'toolCall':
      return (
        <p className="my-1 flex items-center gap-1.5 font-mono text-xs">
          <Wrench size={13} aria-hidden className={`shrink-0 text-accent ${running.includes(part.id) ? 'pulse' : ''}`} />
          <span className="font-medium">{part.name}</span>
          <span className="min-w-0 truncate text-soft">{JSON.stringify(part.arguments)}</span>
        </p>
      )
    case 'image':
      return <p className="text-soft">An image ({part.mimeType ?? 'unknown'})</p>
  }
}
