export default function One({ id }: { id: string }) { return <p>{id}</p> }
