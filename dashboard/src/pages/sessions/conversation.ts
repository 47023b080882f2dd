// A conversation that is being told: events of a session become messages, one after the other.
import type { Message, SessionEvent } from '../../api/session'

export interface Conversation {
  messages: Message[]
  /** The message that is being said. */
  partial: Message | null
  isWorking: boolean
  /** Tools that run, by the id of their call. */
  running: string[]
}

export const SILENT: Conversation = { messages: [], partial: null, isWorking: false, running: [] }

export function told(conversation: Conversation, event: SessionEvent): Conversation {
  switch (event.type) {
    case 'agent_start':
      return { ...conversation, isWorking: true }
    case 'agent_end':
      return { ...conversation, isWorking: false, partial: null, running: [] }
    case 'message_start':
    case 'message_update':
      return event.message?.role === 'assistant' ? { ...conversation, partial: event.message, isWorking: true } : conversation
    case 'message_end':
      return event.message ? { ...conversation, messages: [...conversation.messages, event.message], partial: null } : conversation
    case 'tool_execution_start':
      return { ...conversation, running: [...conversation.running, String(event['toolCallId'])] }
    case 'tool_execution_end':
      return { ...conversation, running: conversation.running.filter((id) => id !== event['toolCallId']) }
    default:
      return conversation
  }
}
