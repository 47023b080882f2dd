// Keeps a page that fails from taking the others with it.
import { Component, type ReactNode } from 'react'
import { Trouble } from '../ui/basics'

export class Caught extends Component<{ children: ReactNode }, { error: unknown }> {
  override state = { error: null as unknown }

  static getDerivedStateFromError(error: unknown) {
    return { error }
  }

  override render() {
    if (this.state.error === null) return this.props.children
    return <Trouble error={this.state.error} again={() => this.setState({ error: null })} />
  }
}
