// A form made from a JSON Schema. What it does not know it asks for as JSON.
import { useState } from 'react'
import type { Json } from '../api/client'
import { Field } from './basics'

export interface Schema {
  type?: string | string[]
  title?: string
  description?: string
  enum?: Json[]
  const?: Json
  default?: Json
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  minimum?: number
  maximum?: number
  maxLength?: number
  format?: string
}

type Fields = Record<string, Json>

const typeOf = (schema: Schema): string | undefined =>
  Array.isArray(schema.type) ? schema.type.find((type) => type !== 'null') : (schema.type ?? (schema.properties ? 'object' : undefined))

/** What the form begins with: every default that the schema names. */
export function beginning(schema: Schema): Fields {
  const found: Fields = {}
  for (const [name, one] of Object.entries(schema.properties ?? {})) {
    if (one.default !== undefined) found[name] = one.default
    else if (one.const !== undefined) found[name] = one.const
  }
  return found
}

/** A value, or its absence: what is left empty is not sent. */
export function withField(fields: Fields, name: string, value: Json | undefined): Fields {
  const { [name]: _, ...rest } = fields
  return value === undefined ? rest : { ...rest, [name]: value }
}

export function SchemaForm({ schema: given, value, change }: { schema: Json; value: Json; change: (value: Json) => void }) {
  const schema = (given ?? {}) as Schema
  const fields = (value !== null && typeof value === 'object' && !Array.isArray(value) ? value : {}) as Fields
  const properties = Object.entries(schema.properties ?? {})
  if (properties.length === 0) return <JsonField label="Value, as JSON" value={value} change={(next) => change(next ?? {})} />
  const isRequired = (name: string) => schema.required?.includes(name) ?? false
  const draw = ([name, one]: [string, Schema]) => (
    <One key={name} name={name} schema={one} isRequired={isRequired(name)} value={fields[name]} change={(next) => change(withField(fields, name, next))} />
  )
  const needed = properties.filter(([name]) => isRequired(name))
  const others = properties.filter(([name]) => !isRequired(name))
  // What need not be given steps back where there is much of it.
  if (needed.length === 0 || others.length < 3) return <div className="flex flex-col gap-3">{[...needed, ...others].map(draw)}</div>
  return (
    <div className="flex flex-col gap-3">
      {needed.map(draw)}
      <details>
        <summary className="text-xs text-soft">{others.length} more that may be given</summary>
        <div className="mt-3 flex flex-col gap-3">{others.map(draw)}</div>
      </details>
    </div>
  )
}

interface OneProps {
  name: string
  schema: Schema
  isRequired: boolean
  value: Json | undefined
  change: (value: Json | undefined) => void
}

function One({ name, schema, isRequired, value, change }: OneProps) {
  const label = `${schema.title ?? name}${isRequired ? ' *' : ''}`
  const hint = schema.description
  const type = typeOf(schema)
  if (schema.enum) {
    return (
      <Field label={label} hint={hint}>
        <select className="field" value={value === undefined ? '' : JSON.stringify(value)} onChange={(event) => change(event.target.value === '' ? undefined : (JSON.parse(event.target.value) as Json))}>
          <option value="" />
          {schema.enum.map((option) => <option key={JSON.stringify(option)} value={JSON.stringify(option)}>{typeof option === 'string' ? option : JSON.stringify(option)}</option>)}
        </select>
      </Field>
    )
  }
  if (type === 'boolean') {
    return (
      <label className="flex items-center gap-2">
        <input type="checkbox" checked={value === true} onChange={(event) => change(event.target.checked)} />
        <span>{label}</span>
        {hint && <span className="text-xs text-faint">{hint}</span>}
      </label>
    )
  }
  if (type === 'integer' || type === 'number') {
    return (
      <Field label={label} hint={hint}>
        <input
          className="field figures" type="number" step={type === 'integer' ? 1 : 'any'} min={schema.minimum} max={schema.maximum}
          value={typeof value === 'number' ? value : ''}
          onChange={(event) => change(event.target.value === '' ? undefined : Number(event.target.value))}
        />
      </Field>
    )
  }
  if (type === 'string') {
    const isLong = schema.maxLength === undefined || schema.maxLength > 200
    const text = typeof value === 'string' ? value : ''
    const give = (next: string) => change(next === '' && !isRequired ? undefined : next)
    return (
      <Field label={label} hint={hint}>
        {isLong && schema.format === undefined
          ? <textarea className="field min-h-[30px] [field-sizing:content]" rows={1} value={text} onChange={(event) => give(event.target.value)} />
          : <input className="field" maxLength={schema.maxLength} value={text} onChange={(event) => give(event.target.value)} />}
      </Field>
    )
  }
  if (type === 'object' && schema.properties) {
    return (
      <fieldset className="rounded-md border border-line p-3">
        <legend className="px-1 text-xs font-medium text-soft">{label}</legend>
        {hint && <p className="mb-2 text-xs text-faint">{hint}</p>}
        <SchemaForm schema={schema as unknown as Json} value={value ?? {}} change={change} />
      </fieldset>
    )
  }
  return <JsonField label={`${label}, as JSON`} hint={hint} value={value} change={change} />
}

export function JsonField({ label, hint, value, change }: { label: string; hint?: string | undefined; value: Json | undefined; change: (value: Json | undefined) => void }) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value, null, 2))
  const [error, setError] = useState<string>()
  const type = (next: string) => {
    setText(next)
    try {
      change(next.trim() === '' ? undefined : (JSON.parse(next) as Json))
      setError(undefined)
    } catch (cause) {
      setError((cause as Error).message)
    }
  }
  return (
    <Field label={label} hint={hint} error={error}>
      <textarea className="field max-h-80 min-h-20 font-mono text-xs [field-sizing:content]" aria-invalid={error !== undefined} spellCheck={false} value={text} onChange={(event) => type(event.target.value)} />
    </Field>
  )
}
